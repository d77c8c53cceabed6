/// A queue of turns, the earliest first: a binary heap.
struct EarliestFirst<Turn: Comparable> {
  private var heap: ContiguousArray<Turn> = []

  var first: Turn? { heap.first }

  mutating func push(_ turn: Turn) {
    var index = heap.count
    heap.append(turn)
    while index > 0, heap[index] < heap[(index - 1) / 2] {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  mutating func pop() -> Turn? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    if heap.isEmpty { return first }
    heap[0] = last
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2]
      where child < heap.count && heap[child] < heap[least] { least = child }
      if least == index { return first }
      heap.swapAt(index, least)
      index = least
    }
  }
}
