/// Code, or a body, that holds executions, tasks or waits which may hold it in turn: when its loop is shut
/// down, it releases them.
package protocol Abandonable: AnyObject {
  /// Releases everything that it holds and waits for. Nothing of it executes any more.
  func abandon()
}
