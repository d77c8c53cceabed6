/// The computation of the key of an op's cache, as a group of one. It sees the data that the op would get, and sets
/// nothing in them.
final class CacheKeyExecution: MemberGroup, KeptReading {
  private let op: Op
  private let bucket: DataBucket
  private let keyName: DataKey
  private var member: Execution?
  private var result: Result<FlowValue, FlowError>?
  private var then: (() -> Void)?

  /// nil when the op of a work has a cache without a function for its key, or the key is known.
  init?(for op: Op, _ work: KeptWork, bucket: DataBucket, parent: Execution) {
    guard let rule = work.cache?.key as? any CacheKeyFunction, work.cacheKey == nil else {
      return nil
    }
    self.op = Op(
      copying: op, name: op.name, body: rule.body(for: op),
      declarations: Declarations(needs: [], gives: []), policy: nil)
    self.bucket = DataBucket(keys: bucket.keys, parent: bucket)
    keyName = bucket.keys.intern(CachePolicy.keyName)
    super.init(parent: parent)
    member = Execution(run: parent.run, data: self.bucket, group: self)
  }

  /// Sets the place of the op in the log.
  func setPlace(scope: UInt32, position: UInt32, index: Int) {
    member?.prepare(op, policy: .unlogged(), scope: scope, position: position, index: index)
    member?.prepareUndo()
  }

  /// Sets the item that the op would get.
  func setItem(_ key: DataKey, _ item: FlowValue) { member?.beginItem(key, item) }

  /// Sets the key of a work when it has been computed; returns the error of the computation.
  func takeKey(_ work: KeptWork) -> FlowError? {
    work.reading = nil
    switch result {
    case .success(.boolean(false))?: work.cache = nil
    case .success(let value)?: work.cacheKey = value
    case .failure(let error)?: return error
    case nil: return .cancelled()
    }
    return nil
  }

  override var isApart: Bool { true }
  override var members: [Execution] { member.map { [$0] } ?? [] }

  func begin(then: @escaping () -> Void) {
    self.then = then
    if let member { engine.drive(member) }
  }

  override func memberEnded(_ member: Execution, _ error: FlowError?) {
    self.member = nil
    result = error.map { .failure($0) } ?? .success(bucket.ownValue(of: keyName) ?? .null)
    // As a work, because the parent releases this.
    engine.push(self)
  }

  override func proceed() {
    let then = then
    self.then = nil
    then?()
  }

  /// Its ops aren't undone.
  override func list(_ ops: ContiguousArray<UndoableOp>) {}

  override func cancel(_ error: FlowError) { member?.cancel(error) }

  func cancel() { cancel(.cancelled()) }

  override func abandon() {
    member = nil
    then = nil
  }
}
