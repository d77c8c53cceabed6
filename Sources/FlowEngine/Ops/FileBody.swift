/// The body of an op that works on a file, on a thread of its own.
final class FileBody: OpBody {
  /// What is done off the loop; gives the content, if it reads.
  typealias Work = @Sendable (Cancellation) throws(FlowError) -> ByteString?

  private let prepare: (OpContext) throws(FlowError) -> Work

  /// A body that does what `prepare`, on the loop, makes of the data.
  init(_ prepare: @escaping (OpContext) throws(FlowError) -> Work) {
    self.prepare = prepare
  }

  func start(_ context: OpContext) -> OpProgress {
    let work: Work
    do throws(FlowError) {
      work = try prepare(context)
    } catch {
      context.fail(error)
      return .finished
    }
    let cancellation = Cancellation()
    context.state = cancellation
    context.loop.offload {
      do throws(FlowError) { return .success(try work(cancellation)) } catch {
        return .failure(error)
      }
    } then: { (result: Result<ByteString?, FlowError>) in
      switch result {
      case .success(let content):
        if let content { context.set("content", content) }
        context.end()
      case .failure(let error): context.end(error)
      }
    }
    return .suspended
  }

  /// The op ends when its thread has let go of the file: nothing is written after it.
  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? Cancellation)?.request()
  }
}
