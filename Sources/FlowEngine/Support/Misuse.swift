import Glibc

/// Ends the process over a wrong use of the Swift API, after saying what was wrong.
///
/// The one place that traps on purpose: `precondition` prints nothing in an optimized build.
@inline(never)
func misuse(_ sentence: String) -> Never {
  let line = Array("FlowEngine: \(sentence)\n".utf8)
  _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  abort()
}
