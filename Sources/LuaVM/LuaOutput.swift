/// The destination of the output of a state's scripts: of `print`, `io.write`, `warn`, and of `write` of `io.stdout`
/// and `io.stderr`. The states of workers have that of their host, and so have the programs that scripts start by
/// `flow.exec` and `ExecOp` with `tee` or without `capture`.
///
/// Not included are the output of programs that `os.execute` and `io.popen` start, which share that of the
/// process, and what C libraries and files such as `/dev/stdout` write.
public enum LuaOutput: Sendable {
  /// Standard output of the process; for warnings and `io.stderr` its standard error.
  case standardOutput
  /// Nowhere.
  case discarded
  /// A function. It gets the bytes of one call: a line with its line feed from `print`, anything from `write`.
  ///
  /// It is called on the thread of the script, which waits for it; with workers on several threads at a
  /// time. It may not use the state.
  case handler(@Sendable (ByteString) -> Void)

  /// The function that gets the output; nil for that of the process.
  package var destination: (@Sendable (ByteString) -> Void)? {
    switch self {
    case .standardOutput: nil
    case .discarded: { _ in }
    case .handler(let handler): handler
    }
  }
}
