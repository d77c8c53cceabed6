/// A key that an op declares, with its type.
package struct Declaration {
  /// The key.
  package let name: ByteString
  /// The type that its value must have.
  package let type: FlowValueType
  /// The meaning of the value, for people.
  package let doc: ByteString?

  /// Declares a key with its type and, if it is given, a text about the value for people.
  package init(_ name: some FlowText, _ type: FlowValueType, doc: (any FlowText)? = nil) {
    self.name = name.byteString
    self.type = type
    self.doc = doc?.byteString
  }
}

/// The needs and gives of an op. Never changes; caches its keys on the loop that used it last.
final class Declarations {
  let needs: [Declaration]
  let gives: [Declaration]
  let primaryInput: ByteString?
  let primaryOutput: ByteString?
  /// The keys that were given explicitly, not derived from the only key.
  let givenPrimaryInput: ByteString?
  let givenPrimaryOutput: ByteString?
  let hasNeeds: Bool
  let hasGives: Bool
  /// Whether a key of them is a stream.
  let hasStreams: Bool
  /// Whether a type of them is about files.
  let hasFiles: Bool
  // Unchecked exclusivity: see HotPath.swift.
  @exclusivity(unchecked) private var resolved: ResolvedDeclarations? {
    didSet { quick = resolved.map { .passUnretained($0) } }
  }
  // The object of `resolved`, for a check that retains nothing and calls nothing.
  @exclusivity(unchecked) private var quick: Unmanaged<ResolvedDeclarations>?

  /// Both lists are kept in the order of their keys, which is the order of the checks.
  init(
    needs: [Declaration] = [], gives: [Declaration] = [], primaryInput: ByteString? = nil,
    primaryOutput: ByteString? = nil
  ) {
    self.needs = needs.sorted { $0.name < $1.name }
    self.gives = gives.sorted { $0.name < $1.name }
    givenPrimaryInput = primaryInput
    givenPrimaryOutput = primaryOutput
    self.primaryInput = primaryInput ?? (needs.count == 1 ? needs[0].name : nil)
    self.primaryOutput = primaryOutput ?? (gives.count == 1 ? gives[0].name : nil)
    hasNeeds = !needs.isEmpty
    hasGives = !gives.isEmpty
    hasStreams = needs.contains { $0.type.isStream } || gives.contains { $0.type.isStream }
    hasFiles = needs.contains { $0.type.hasFiles } || gives.contains { $0.type.hasFiles }
  }

  /// The declarations with the keys of `keys`; cached, because an op seldom changes loops.
  func resolved(for keys: KeyTable) -> ResolvedDeclarations {
    if let resolved, resolved.keys === keys { return resolved }
    let made = ResolvedDeclarations(self, keys)
    resolved = made
    return made
  }

  /// Whether a bucket meets all needs, judged by the kinds of its values alone: also false when
  /// only `inputError` can decide. Calls nothing that could release anything.
  @inline(__always)
  func clearlyMeetsNeeds(_ bucket: DataBucket, and itemKey: DataKey, _ item: ValueKinds) -> Bool {
    quick?.lend { $0.clearlyMeetsNeeds(bucket, and: itemKey, item) } ?? false
  }

  /// Whether a bucket meets all gives, judged in the same way.
  @inline(__always)
  func clearlyKeepsGives(_ bucket: DataBucket) -> Bool {
    quick?.lend { $0.clearlyKeepsGives(bucket) } ?? false
  }

  /// The input error of the first need that `bucket` doesn't meet; nil when it meets all.
  func inputError(in bucket: DataBucket) -> FlowError? {
    let resolved = resolved(for: bucket.keys)
    guard let unmet = ResolvedDeclarations.firstUnmet(resolved.needs, in: bucket) else {
      return nil
    }
    let name = bucket.keys.name(of: unmet.key)
    guard let (value, wanted) = unmet.mismatch else { return bucket.missingInput(unmet.key) }
    return .mismatchedInput(
      name, bucket.shown(value, of: unmet.key), wanted: wanted, hiding: bucket.keys.secrets)
  }

  /// The output error of the first give that `bucket` doesn't meet; nil when it meets all.
  func outputError(in bucket: DataBucket) -> FlowError? {
    let resolved = resolved(for: bucket.keys)
    guard let unmet = ResolvedDeclarations.firstUnmet(resolved.gives, in: bucket) else {
      return nil
    }
    let name = bucket.keys.name(of: unmet.key)
    guard let (value, wanted) = unmet.mismatch else { return bucket.missingOutput(unmet.key) }
    return .mismatchedOutput(
      name, bucket.shown(value, of: unmet.key), wanted: wanted, hiding: bucket.keys.secrets)
  }
}

/// Declarations on one loop.
final class ResolvedDeclarations {
  /// A declaration that a bucket doesn't meet: the key is missing, or its value is of another type.
  struct Unmet {
    let key: DataKey
    let mismatch: (value: FlowValue, wanted: ByteString)?
  }

  let keys: KeyTable
  let needs: [(key: DataKey, type: FlowValueType)]
  let gives: [(key: DataKey, type: FlowValueType)]
  // The parts of both lists that a check of the values' kinds can decide. They have memory of their
  // own, from init to deinit, because each check would retain an array.
  private let quickNeeds: UnsafeMutableBufferPointer<Quick>
  private let quickGives: UnsafeMutableBufferPointer<Quick>

  /// A key, and the kinds of values that its type accepts without a closer check.
  private struct Quick {
    let key: DataKey
    let kinds: ValueKinds
  }

  init(_ declarations: Declarations, _ keys: KeyTable) {
    self.keys = keys
    needs = declarations.needs.map { (keys.intern($0.name), $0.type) }
    // A stream isn't in the data.
    gives = declarations.gives.filter { !$0.type.isStream }.map { (keys.intern($0.name), $0.type) }
    quickNeeds = Self.quick(needs)
    quickGives = Self.quick(gives)
  }

  deinit {
    quickNeeds.deallocate()
    quickGives.deallocate()
  }

  private static func quick(
    _ declared: [(key: DataKey, type: FlowValueType)]
  ) -> UnsafeMutableBufferPointer<Quick> {
    let list = UnsafeMutableBufferPointer<Quick>.allocate(capacity: declared.count)
    _ = list.initialize(from: declared.map { Quick(key: $0.key, kinds: $0.type.kinds) })
    return list
  }

  /// Whether a bucket meets all needs; also false when only a closer check can decide.
  @inline(__always)
  func clearlyMeetsNeeds(_ bucket: DataBucket, and itemKey: DataKey, _ item: ValueKinds) -> Bool {
    bucket.keys === keys
      && quickNeeds.allSatisfy {
        $0.kinds.contains($0.key == itemKey ? item : bucket.kind(of: $0.key))
      }
  }

  /// Whether a bucket meets all gives, in the same way.
  @inline(__always)
  func clearlyKeepsGives(_ bucket: DataBucket) -> Bool {
    bucket.keys === keys && quickGives.allSatisfy { $0.kinds.contains(bucket.kind(of: $0.key)) }
  }

  @inline(__always)
  static func firstUnmet(
    _ declared: [(key: DataKey, type: FlowValueType)], in bucket: DataBucket
  ) -> Unmet? {
    for index in declared.indices {
      let key = declared[index].key
      if let value = bucket.get(key) {
        guard let wanted = declared[index].type.mismatch(value) else { continue }
        return Unmet(key: key, mismatch: (value, wanted))
      }
      if !declared[index].type.isOptional { return Unmet(key: key, mismatch: nil) }
    }
    return nil
  }
}
