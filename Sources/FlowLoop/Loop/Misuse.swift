import Glibc

/// Ends the process because of a wrong use of the Swift API, with a sentence about it.
///
/// The only place that traps on purpose: `precondition` prints nothing in an optimized build.
@inline(never)
package func misuse(_ sentence: String) -> Never {
  let line = Array("FlowEngine: \(sentence)\n".utf8)
  _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  abort()
}
