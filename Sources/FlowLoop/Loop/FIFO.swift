/// A queue: elements leave it in the order in which they came, each in a constant time on average.
package struct FIFO<Element> {
  private var elements: ContiguousArray<Element> = []
  /// The index of the first one; those before it have left.
  private var head = 0

  package init() {}

  package var count: Int { elements.count - head }
  package var isEmpty: Bool { head == elements.count }
  package var first: Element? { isEmpty ? nil : elements[head] }
  /// All of them, the first one first.
  package var all: ArraySlice<Element> { ArraySlice(elements[head...]) }

  /// The element that so many others are before.
  package func element(_ place: Int) -> Element? {
    place >= 0 && place < count ? elements[head + place] : nil
  }

  package mutating func append(_ element: Element) { elements.append(element) }

  /// Adds one before the first one.
  package mutating func prepend(_ element: Element) {
    if head == 0 { return elements.insert(element, at: 0) }
    head -= 1
    elements[head] = element
  }

  package mutating func popFirst() -> Element? {
    guard let first else { return nil }
    removeFirst(1)
    return first
  }

  package mutating func removeFirst(_ count: Int) {
    head += min(count, self.count)
    if isEmpty {
      elements.removeAll(keepingCapacity: true)
      head = 0
    } else if head >= 64, head > elements.count / 2 {
      elements.removeSubrange(..<head)
      head = 0
    }
  }

  package mutating func removeAll(where isRemoved: (Element) -> Bool = { _ in true }) {
    elements = ContiguousArray(elements[head...].filter { !isRemoved($0) })
    head = 0
  }
}

extension FIFO: Sendable where Element: Sendable {}
