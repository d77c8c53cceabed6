/// Something that is released when its owner ends, at the latest: a temporary folder, a watch.
///
/// It is a task that the owner adopts; it settles when the resource is released, so the owner waits
/// for that. It neither keeps the loop from being idle nor a script from ending.
package final class OwnedResource: FlowTask<Void> {
  private var release: ((_ done: @escaping () -> Void) -> Void)?

  /// Makes a pending task; `release` is called once, and calls `done` when the resource is released.
  package init(
    on loop: EventLoop, release: @escaping (_ done: @escaping () -> Void) -> Void
  ) {
    self.release = release
    super.init(on: loop)
  }

  package override var title: ByteString { title(of: "resource") }

  /// Records that the resource was released otherwise.
  package func noteReleased() {
    release = nil
    end(with: ())
  }

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    guard let release else { return nil }
    self.release = nil
    release { [self] in end(with: ()) }
    return nil
  }
}
