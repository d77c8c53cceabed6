internal import FlowEngine

/// Writes the graph for `--graph`.
enum GraphFileWriter {
  struct Failure: Error {
    let message: ByteString
  }

  static func write(
    _ graphs: GraphCollection, to file: LongOptions.GraphFile
  ) throws(Failure) {
    switch file.form {
    case .dot: try save(graphs.dot(), file.path)
    case .mmd: try save(graphs.mermaid(), file.path)
    case .svg: try save(try draw(graphs.dot(), file.path), file.path)
    }
  }

  private static func save(_ text: ByteString, _ path: ByteString) throws(Failure) {
    if let reason = TextFile.write(text, to: path) {
      throw Failure(message: "can't write the graph to '\(path)': \(reason)")
    }
  }

  /// Runs Graphviz to draw a graph.
  private static func draw(_ dot: ByteString, _ path: ByteString) throws(Failure) -> ByteString {
    let loop = EventLoop()
    let request = ProcessRequest(["dot", "-Tsvg"], stdin: dot)
    var outcome: Result<ProcessResult, FlowError>?
    loop.startProcess(request) { outcome = $0 }
    _ = loop.run { outcome != nil }
    switch outcome {
    case .success(let result)? where result.status == 0 && result.signal == nil:
      return result.stdout
    case .success(let result)?:
      throw Failure(
        message: "can't draw '\(path)': Graphviz' dot failed: \(result.stderr)")
    case .failure(let error)?:
      throw Failure(
        message: """
          can't draw '\(path)': \(error.messageBytes); .svg needs Graphviz (on Debian: apt install \
          graphviz), .dot and .mmd need nothing
          """)
    case nil: throw Failure(message: "can't draw '\(path)'")
    }
  }
}
