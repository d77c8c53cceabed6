/// Calls `body` with an object that isn't retained meanwhile: on the hot path retains would cost as
/// much as what is done there.
///
/// Only for what somebody else holds until `body` has returned, whatever it calls. (The object comes
/// from a closure, as an argument would be retained for as long as the call.)
@inline(__always)
func unretained<Object: AnyObject, Result>(
  _ object: @autoclosure () -> Object, _ body: (Object) throws -> Result
) rethrows -> Result {
  try Unmanaged.passUnretained(object())._withUnsafeGuaranteedRef(body)
}
