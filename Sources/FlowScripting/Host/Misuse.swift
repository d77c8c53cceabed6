internal import Glibc

/// Ends the program with a message on stderr: the way in which misuse of this library's Swift API
/// traps. No script can reach it.
func misuse(_ sentence: String) -> Never {
  let line = "FlowScripting: " + sentence + "\n"
  _ = Array(line.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  abort()
}
