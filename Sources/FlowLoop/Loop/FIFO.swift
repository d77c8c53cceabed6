/// A queue: elements leave it in the order in which they came, each in a constant time on average.
// Public, for packages of their own only, and inlinable: in another module functions of a package know nothing of the type of
// the elements, and take 20 times the instructions.
@_spi(Scripting) public struct FIFO<Element> {
  @usableFromInline var elements: ContiguousArray<Element> = []
  /// The index of the first one; those before it have left.
  @usableFromInline var head = 0

  /// An empty queue.
  @inlinable public init() {}

  /// How many there are.
  @inlinable public var count: Int { elements.count - head }
  /// Whether there is none.
  @inlinable public var isEmpty: Bool { head == elements.count }
  /// The one that leaves next.
  @inlinable public var first: Element? { isEmpty ? nil : elements[head] }
  /// All of them, the first one first.
  @inlinable public var all: ArraySlice<Element> { ArraySlice(elements[head...]) }

  /// The element that so many others are before.
  @inlinable public func element(_ place: Int) -> Element? {
    place >= 0 && place < count ? elements[head + place] : nil
  }

  /// Adds one after the last one.
  @inlinable public mutating func append(_ element: Element) { elements.append(element) }

  /// Adds one before the first one.
  @inlinable public mutating func prepend(_ element: Element) {
    if head == 0 { return elements.insert(element, at: 0) }
    head -= 1
    elements[head] = element
  }

  /// Takes the first one out; nil if there is none.
  @inlinable public mutating func popFirst() -> Element? {
    guard let first else { return nil }
    removeFirst(1)
    return first
  }

  /// Removes so many, or all.
  @inlinable public mutating func removeFirst(_ count: Int) {
    head += min(count, self.count)
    if isEmpty {
      elements.removeAll(keepingCapacity: true)
      head = 0
    } else if head >= 64, head > elements.count / 2 {
      elements.removeSubrange(..<head)
      head = 0
    }
  }

  /// Removes those that a function says, by default all.
  @inlinable public mutating func removeAll(where isRemoved: (Element) -> Bool = { _ in true }) {
    elements = ContiguousArray(elements[head...].filter { !isRemoved($0) })
    head = 0
  }
}

extension FIFO: Sendable where Element: Sendable {}
