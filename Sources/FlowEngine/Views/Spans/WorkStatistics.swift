/// The programs and requests of a run, merged by program, or by method and server.
struct WorkStatistics {
  /// Those of one program or server.
  struct Tally {
    /// `git`, `GET https://api.example`.
    let name: ByteString
    var runs = 0
    var failed = 0
    /// In nanoseconds.
    var total: Int64 = 0
    var median: Int64 = 0
    var longest: Int64 = 0
  }

  /// Those with the greatest totals first.
  let tallies: [Tally]

  init(_ run: RunSpans) {
    var tallies: [Tally] = []
    var durations: [ContiguousArray<Int64>] = []
    var places: [ByteString: Int] = [:]
    for work in run.works where work.work.kind != .wait {
      let name = Self.name(of: work.work)
      let place = places[name] ?? tallies.count
      if place == tallies.count {
        places[name] = place
        tallies.append(Tally(name: name))
        durations.append([])
      }
      tallies[place].runs += 1
      if work.work.outcome == .failed { tallies[place].failed += 1 }
      tallies[place].total = tallies[place].total.later(by: work.end - work.start)
      durations[place].append(work.end - work.start)
    }
    for place in tallies.indices {
      durations[place].sort()
      tallies[place].median = Durations.percentile(50, ofSorted: durations[place])
      tallies[place].longest = durations[place].last ?? 0
    }
    self.tallies = tallies.sorted { ($0.total, $1.name) > ($1.total, $0.name) }
  }

  private static func name(of work: LoggedWork) -> ByteString {
    guard work.kind == .request else { return work.name }
    // The third slash begins the path.
    var slashes = 0
    let server = work.title.bytes.prefix { byte in
      if byte == UInt8(ascii: "/") { slashes += 1 }
      return slashes < 3
    }
    return ByteString(Array(server))
  }
}
