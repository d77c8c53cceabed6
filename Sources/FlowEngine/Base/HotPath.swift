// Two things that the hot path of the engine does without, because they would cost as much as its own
// work.
//
// Exclusivity checks. Swift checks at run time that no access to a property of an object overlaps with
// another one. Properties marked `@exclusivity(unchecked)` aren't checked. That is safe for those, because
// only the thread of their loop touches them, and no access lasts into a call of anything that could touch
// them again: a body, a callback, a job, a sink. (The attribute belongs to a stored property, so no
// wrapper can give it, and it is lost in another module, so such properties aren't public.)
//
// Retains. The functions below lend an object that isn't retained meanwhile.

/// Calls `body` with an object that isn't retained meanwhile.
///
/// Only for an object that other code holds until `body` has returned, whatever `body` calls. (A
/// closure provides the object, because an argument would be retained for the duration of the
/// call.)
@inline(__always)
func unretained<Object: AnyObject, Result>(
  _ object: @autoclosure () -> Object, _ body: (Object) throws -> Result
) rethrows -> Result {
  try Unmanaged.passUnretained(object()).lend(body)
}

/// Calls `body` with an object, if there is one, that isn't retained meanwhile; nil without one.
@inline(__always)
func unretained<Object: AnyObject, Result>(
  ifAny object: @autoclosure () -> Object?, _ body: (Object) throws -> Result
) rethrows -> Result? {
  guard let object = object().map({ Unmanaged.passUnretained($0) }) else { return nil }
  return try object.lend(body)
}

extension Unmanaged {
  /// Calls `body` with the object, which isn't retained meanwhile: see `unretained`.
  @inline(__always)
  func lend<Result>(_ body: (Instance) throws -> Result) rethrows -> Result {
    try _withUnsafeGuaranteedRef(body)
  }
}
