internal import CFlowLua

extension LuaVM {
  /// Adapts the standard libraries to a sandbox that the process has entered.
  ///
  /// - Parameters:
  ///   - deniesPrograms: Whether `io.popen` says "Permission denied", as the system lets the process start no programs.
  ///   - temporaryFolder: Where `os.tmpname` and `io.tmpfile` make files; nil for the usual folder.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package func confine(deniesPrograms: Bool, temporaryFolder: ByteString?) throws {
    try enter()
    let folder = temporaryFolder.map { $0.bytes.map { CChar(bitPattern: $0) } + [0] }
    try check(flowlua_confine(state, deniesPrograms, folder))
  }
}
