/// Ends the process because of a wrong use of the Swift API, with a sentence about it and the place of the wrong call.
///
/// All modules trap here when they do so on purpose. No script can reach it.
///
/// - Parameters:
///   - sentence: The mistake.
///   - file: The caller's file: a function that is used wrongly passes on what it was given.
///   - line: The caller's line.
package func misuse(
  _ sentence: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) -> Never {
  // Its message is printed in optimized builds, too; `precondition` prints none there.
  fatalError(sentence(), file: file, line: line)
}
