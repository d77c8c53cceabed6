internal import Glibc

/// Ends the program with a message on stderr: the only way in which misuse of this library's Swift
/// API traps. (`precondition` prints nothing in release builds.) No script can reach it.
func misuse(_ sentence: String) -> Never {
  let line = "LuaVM: " + sentence + "\n"
  _ = Array(line.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  abort()
}
