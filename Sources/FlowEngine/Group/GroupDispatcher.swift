/// How a group hands a list to an op, item by item, and what it collects.
public final class GroupDispatcher {
  /// The key of the list.
  public let input: ByteString
  /// The key under which outputs are stored, in the order of the input; nil collects nothing.
  public let output: ByteString?
  /// How many items execute at the same time, at least 1.
  public let maxConcurrent: Int
  /// Whether the group goes on when an item fails. Failed items are left out of the outputs, unless
  /// `absent` stands in for them.
  public let allowFailure: Bool
  /// Whether an empty list is fine.
  public let allowEmpty: Bool
  /// The key under which failed items are stored.
  public let failures: ByteString?
  /// The key that holds the item; by default the op's primary input.
  public let itemKey: ByteString?
  /// The key that is collected; by default the op's primary output.
  public let collect: ByteString?
  /// The value that stands in the outputs for an item that has none: for one that has failed, with
  /// `allowFailure`, and for one that has succeeded without an output that its op declares optional.
  /// Outputs then align with items. nil leaves such items out.
  public let absent: Value?

  /// How a group works, all of it; see the properties.
  public init(
    input: ByteString, output: ByteString? = nil, maxConcurrent: Int = 3,
    allowFailure: Bool = false, allowEmpty: Bool = false, failures: ByteString? = nil,
    as itemKey: ByteString? = nil, collect: ByteString? = nil, absent: Value? = nil
  ) {
    self.input = input
    self.output = output
    self.maxConcurrent = maxConcurrent
    self.allowFailure = allowFailure
    self.allowEmpty = allowEmpty
    self.failures = failures
    self.itemKey = itemKey
    self.collect = collect
    self.absent = absent.flatMap { $0.isNull ? nil : $0 }
  }

  /// What makes a group of `op` impossible, nil when nothing does. A run fails with it.
  public func problem(with op: Op) -> ByteString? {
    if maxConcurrent < 1 { return "max_concurrent is \(maxConcurrent), but must be 1 or more" }
    if itemKey ?? op.primaryInput == nil {
      return "a group of [\(op.name)] has no key for its items: give 'as' or a primary input"
    }
    if output != nil, collect ?? op.primaryOutput == nil {
      return "a group of [\(op.name)] has no key to collect: give 'collect' or a primary output"
    }
    if output == nil, absent != nil {
      return "a group of [\(op.name)] has a value for absent outputs, but no output"
    }
    return nil
  }
}

extension Op {
  /// Whether it may succeed without a value under a key, because it declares that one optional.
  func mayLeaveOut(_ output: ByteString?) -> Bool {
    gives.contains { $0.name == output && $0.type.isOptional }
  }
}
