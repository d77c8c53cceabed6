/// Where the texts of a log are after it has moved them, so that records which share a text still share it: those of the
/// arena, or the large ones.
///
/// Most texts come in the order of their offsets, because each was appended with its first record: those are found by a
/// binary search, and only the others need a dictionary, which would take three times as long for all.
struct MovedTexts {
  private var ascending: ContiguousArray<(from: Payload, to: Payload)> = []
  private var others: [UInt64: Payload] = [:]

  /// The new payload of a text; `move` makes it when the text is met for the first time.
  mutating func moved(_ payload: Payload, _ move: () -> Payload) -> Payload {
    if let last = ascending.last, payload.offset <= last.from.offset {
      if let known = known(payload) ?? others[payload.bits] { return known }
      let made = move()
      others[payload.bits] = made
      return made
    }
    let made = move()
    ascending.append((payload, made))
    return made
  }

  private func known(_ payload: Payload) -> Payload? {
    let offset = payload.offset
    var (low, high) = (0, ascending.count)
    while low < high {
      let middle = (low + high) / 2
      if ascending[middle].from.offset < offset {
        low = middle + 1
      } else {
        high = middle
      }
    }
    guard low < ascending.count, ascending[low].from.bits == payload.bits else { return nil }
    return ascending[low].to
  }
}
