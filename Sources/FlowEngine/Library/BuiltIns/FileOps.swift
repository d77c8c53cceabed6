/// Reads a whole file: needs `path`, gives `content`, both byte for byte.
///
/// It always runs off the loop, whatever the size: a file may be on a network, or a pipe, and its
/// duration can't be known beforehand.
///
/// ```swift
/// let run = ReadFileOp().start(on: loop, data: ["path": "notes.txt"])
/// print(try await run.value.value("content") ?? "")
/// ```
public final class ReadFileOp: Op {
  /// Makes an op that reads the file at `path`.
  public init() {
    super.init(
      name: "ReadFileOp", doc: "Reads the file at path: gives content.",
      needs: Op.declarations(["path": "string"]),
      gives: Op.declarations(["content": "string"]),
      body: FileBody { context throws(FlowError) in
        let path: ByteString = try context.value("path")
        return { memory, cancellation throws(SystemError) in
          try Files.read(path, in: memory, cancellation)
        }
      })
  }
}

/// Writes a whole file or leaves it unchanged: needs `path` and `content`.
///
/// The content is written to a temporary file in the same folder, then flushed to the disk, and
/// only then does that file replace the old one. An existing file keeps its permissions, and a
/// symbolic link stays a link.
///
/// ```swift
/// let run = WriteFileOp().start(on: loop, data: ["path": "notes.txt", "content": "pears"])
/// ```
public final class WriteFileOp: Op {
  /// Makes an op that writes `content` to the file at `path`.
  public init() {
    super.init(
      name: "WriteFileOp",
      doc: "Writes content to the file at path, or leaves that unchanged.",
      needs: Op.declarations(["path": "string", "content": "string"]),
      body: FileBody { context throws(FlowError) in
        let path: ByteString = try context.value("path")
        let content: ByteString = try context.value("content")
        return { _, cancellation throws(SystemError) in
          try Files.write(content, to: path, cancellation)
          return nil
        }
      })
  }
}

/// The body of an op that works on a file, on a thread of its own.
final class FileBody: OpBody {
  /// The work off the loop; returns the content, if it reads, which counts where the first argument says.
  typealias Work = @Sendable (CollectedBytes?, Cancellation) throws(SystemError) -> ByteString?

  private let prepare: (OpContext) throws(FlowError) -> Work

  /// Makes a body whose work is made from the data by `prepare`, on the loop.
  init(_ prepare: @escaping (OpContext) throws(FlowError) -> Work) {
    self.prepare = prepare
  }

  func start(_ context: OpContext) -> CallState {
    let work: Work
    do throws(FlowError) {
      work = try prepare(context)
    } catch {
      context.fail(error)
      return .finished
    }
    let stop = FileWorkStop()
    context.state = stop
    let cancellation = stop.cancellation
    let memory = context.loop.memory?.beginCollecting()
    context.loop.offload {
      do throws(SystemError) { return .success(try work(memory, cancellation)) } catch {
        return .failure(error)
      }
    } then: { (result: Result<ByteString?, SystemError>) in
      switch result {
      case .success(let content):
        if let content { context.set("content", content) }
        memory?.release()
        context.end()
      case .failure(let error):
        memory?.release()
        context.end(.from(error))
      }
    }
    return .suspended
  }

  /// The op ends when its thread has released the file: nothing is written after that.
  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? FileWorkStop)?.cancellation.request()
  }
}

/// Stops the work when nobody waits for it any more: a loop that is shut down drops its ops.
private final class FileWorkStop {
  let cancellation = Cancellation()

  deinit { cancellation.request() }
}
