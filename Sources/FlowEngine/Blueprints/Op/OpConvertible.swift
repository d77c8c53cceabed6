/// A type that can be a step of a flow: an op, a flow, or a typed op.
public protocol OpConvertible {
  /// Returns the op. A typed op makes a new one at each call.
  func makeOp() -> Op
}

extension Op: OpConvertible {
  /// The op itself.
  public func makeOp() -> Op { self }
}
