/// A limit of time that can stand still.
package protocol PausableLimit: AnyObject {
  /// Stops counting, until `resume` is called as often.
  func pause()
  func resume()
  func end()
}

/// Has time limits stand still while an op waits for a message: those of the op, and of all that encloses it.
package final class LimitPause {
  private let around: () -> [any PausableLimit]
  private var paused: [any PausableLimit] = []

  /// - Parameter around: Returns the limits; called when the pause begins.
  init(_ around: @escaping () -> [any PausableLimit]) { self.around = around }

  func begin() {
    paused = around()
    for limit in paused { limit.pause() }
  }

  func end() {
    let ended = paused
    paused = []
    // Those that others follow from first.
    for limit in ended.reversed() { limit.resume() }
  }
}
