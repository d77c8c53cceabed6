/// A function that computes the key of an op's cache.
package protocol CacheKeyFunction: CacheKeyRule {
  /// A body that sets `CachePolicy.keyName`; it may wait. It is executed on the loop's thread with the data that the op
  /// would get, wherever the op itself runs.
  func body(for op: Op) -> any OpBody
}
