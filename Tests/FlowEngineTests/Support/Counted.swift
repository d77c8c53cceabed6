/// Reports its creation, as 1, and its release, as -1.
final class Counted {
  private let change: (Int) -> Void

  init(_ change: @escaping (Int) -> Void) {
    self.change = change
    change(1)
  }

  deinit { change(-1) }
}
