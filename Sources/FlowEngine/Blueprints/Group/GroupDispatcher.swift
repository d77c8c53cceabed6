/// The settings of a group: how it passes a list to an op, item by item, and which outputs it
/// collects.
///
/// ```swift
/// let upload = Flow("upload").addGrouped(
///   UploadOp(),
///   GroupDispatcher(input: "images", output: "urls", maxConcurrent: 4, allowFailure: true))
/// let run = upload.start(on: loop, data: ["images": ["a.png", "b.png"] as FlowValue])
/// ```
public struct GroupDispatcher {
  /// The key of the list.
  package let input: ByteString
  /// The key under which outputs are stored, in the order of the input; nil collects nothing.
  package let output: ByteString?
  /// How many items execute at the same time, at least 1. An item that waits for its next attempt
  /// doesn't execute, unless `holdsSlots` is set.
  package let maxConcurrent: Int
  /// Whether the group continues when an item fails. Failed items are left out of the outputs,
  /// unless `absent` replaces them.
  package let allowFailure: Bool
  /// Whether the list may be empty.
  package let allowEmpty: Bool
  /// The key under which failed items are stored.
  package let failures: ByteString?
  /// The key that holds the item; by default the op's primary input.
  package let itemKey: ByteString?
  /// The key that is collected; by default the op's primary output.
  package let collect: ByteString?
  /// The value in the outputs for an item that has none: an item that has failed, with
  /// `allowFailure`, or one that has succeeded without an output that its op declares optional.
  /// Outputs then align with items. nil leaves such items out.
  package let absent: FlowValue?
  /// How many items start in a time, at most; nil for no limit. Further attempts at items count as
  /// starts.
  package let rate: RateLimit?
  /// Whether an item that waits for its next attempt counts towards `maxConcurrent`. By default
  /// another item executes meanwhile.
  package let holdsSlots: Bool
  /// The limits that each item holds while it executes, besides the limits of the op; see `Op.limits`.
  package let limits: [Limit]
  /// Whether results that pass to other steps of a graph do so in the order of the input; otherwise as items finish. The
  /// list of the outputs is always in that order.
  package let isOrdered: Bool
  /// Makes the label of an item, which lines, paths, events and errors show after its index:
  /// `UploadOp #3 cat.png`. nil gives the item none. It is called for each item when the group
  /// starts, on the loop's thread; when it throws, the group fails. An item that is secret has no
  /// label.
  package let label: ((_ item: FlowValue) throws -> (any FlowText)?)?
  /// Makes, for each execution of a group, what decides after each item whether more are needed; nil for no such decision.
  package var stopRule: (() -> GroupStopRule)?
  /// The value that a front end has made `stopRule` of.
  package var stopSource = FlowValue.null
  /// The value that a front end has made `label` of: code that has this dispatcher is compared by it.
  package var labelSource = FlowValue.null

  /// Makes the settings of a group.
  ///
  /// - Parameters:
  ///   - input: The key of the list.
  ///   - output: The key under which outputs are stored, in the order of the input; nil collects nothing.
  ///   - maxConcurrent: How many items execute at the same time, at least 1.
  ///   - allowFailure: Whether the group continues when an item fails.
  ///   - allowEmpty: Whether the list may be empty.
  ///   - failures: The key under which failed items are stored.
  ///   - itemKey: The key that holds the item; by default the op's primary input.
  ///   - collect: The key that is collected; by default the op's primary output.
  ///   - absent: The value in the outputs for an item that has none; see the property.
  ///   - rate: How many items start in a time, at most; nil for no limit.
  ///   - holdsSlots: Whether an item that waits for its next attempt counts towards `maxConcurrent`.
  ///   - limits: The limits that each item holds while it executes, besides the limits of the op.
  ///   - isOrdered: Whether results pass to other steps of a graph in the order of the input; see the property.
  ///   - stopWhen: Called after each item, with the outputs so far, in the order in which they came, and with the number of
  ///     items that have ended. When it returns true, no more items start, those that execute end, and the group
  ///     succeeds; when it throws, the group fails.
  ///   - label: Makes the label of an item, which lines, paths, events and errors show after its index:
  ///     `UploadOp #3 cat.png`. nil gives the item none. It is called for each item when the group
  ///     starts, on the loop's thread; when it throws, the group fails. An item that is secret has no
  ///     label.
  public init(
    input: some FlowText, output: (any FlowText)? = nil, maxConcurrent: Int = 3,
    allowFailure: Bool = false, allowEmpty: Bool = false, failures: (any FlowText)? = nil,
    as itemKey: (any FlowText)? = nil, collect: (any FlowText)? = nil, absent: FlowValue? = nil,
    rate: RateLimit? = nil, holdsSlots: Bool = false, limits: [Limit] = [], isOrdered: Bool = true,
    stopWhen: ((_ outputs: [FlowValue], _ ended: Int) throws -> Bool)? = nil,
    label: ((_ item: FlowValue) throws -> (any FlowText)?)? = nil
  ) {
    self.input = input.byteString
    self.output = output?.byteString
    self.maxConcurrent = maxConcurrent
    self.allowFailure = allowFailure
    self.allowEmpty = allowEmpty
    self.failures = failures?.byteString
    self.itemKey = itemKey?.byteString
    self.collect = collect?.byteString
    self.absent = absent.flatMap { $0.isNull ? nil : $0 }
    self.rate = rate
    self.holdsSlots = holdsSlots
    self.limits = limits
    self.isOrdered = isOrdered
    self.label = label
    stopRule = stopWhen.map { decide in
      {
        var outputs: [FlowValue] = []
        return { output, ended in
          if let output { outputs.append(output) }
          return try decide(outputs, ended)
        }
      }
    }
  }
}

/// Decides after each item of a group whether no more are needed: gets the item's output, if it has one, and how many items
/// have ended.
package typealias GroupStopRule = (_ output: FlowValue?, _ ended: Int) throws -> Bool

extension GroupDispatcher {
  /// Why a group of `op` is impossible; nil when it is possible. A run fails with this problem.
  package func problem(with op: Op) -> ByteString? {
    if maxConcurrent < 1 { return "max_concurrent is \(maxConcurrent), but must be 1 or more" }
    if itemKey ?? op.primaryInput == nil {
      return "a group of [\(op.name)] has no key for its items: give 'as' or a primary input"
    }
    if output != nil, collect ?? op.primaryOutput == nil {
      return
        "a group of [\(op.name)] has no key to collect: give 'collect' or a primary output"
    }
    if let problem = problem(ofStreamsOf: op) { return problem }
    if output == nil, absent != nil {
      return "a group of [\(op.name)] has a value for absent outputs, but no output"
    }
    return nil
  }

  /// Why a group of an op that writes streams is impossible; nil when it is possible.
  func problem(ofStreamsOf op: Op) -> ByteString? {
    guard op.declarations.hasStreams, let stream = op.gives.first(where: \.type.isStream) else {
      return nil
    }
    return
      "[\(op.name)] gives <\(stream.name)> as a stream, which an item of a group can't write"
  }
}

extension RateLimit {
  /// `10 per 1s`.
  var text: ByteString { "\(count) per \(FlowValue.text(of: period))" }
}

extension Op {
  /// Whether the op may succeed without a value under a key, because it declares the key optional.
  func mayLeaveOut(_ output: ByteString?) -> Bool {
    gives.contains { $0.name == output && $0.type.isOptional }
  }
}
