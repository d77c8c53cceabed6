internal import FlowEngine

/// Work that is done once for each key: for the first one who needs it, while the others wait for its end. Confined to
/// the thread of a loop.
final class OncePerKey<Key: Hashable> {
  private final class Work {
    var isDone = false
    var waiting: [(FlowError?) -> Void] = []
  }

  private var works: [Key: Work] = [:]

  /// The keys of what is done or underway.
  var keys: [Key] { Array(works.keys) }

  func isDone(_ key: Key) -> Bool { works[key]?.isDone == true }

  /// Lets the work be done again.
  func forget(_ key: Key) { works[key] = nil }

  /// Calls `then` once the work is done, or has failed; after a failure the next one who needs it begins it again.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - then: Gets the error of the work, or nil.
  ///   - begin: Begins the work, if nobody has; it gets a function that is called at the end.
  func need(
    _ key: Key, then: @escaping (FlowError?) -> Void,
    begin: (@escaping (FlowError?) -> Void) -> Void
  ) {
    if let work = works[key] {
      if work.isDone { return then(nil) }
      work.waiting.append(then)
      return
    }
    let work = Work()
    work.waiting = [then]
    works[key] = work
    begin { [weak self] error in
      guard let self, works[key] === work, !work.isDone else { return }
      if error == nil { work.isDone = true } else { works[key] = nil }
      let waiting = work.waiting
      work.waiting = []
      for then in waiting { then(error) }
    }
  }
}
