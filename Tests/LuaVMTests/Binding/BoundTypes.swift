@_spi(Scripting) import LuaVM

/// A class with all kinds of members.
class Animal: LuaObject {
  final let name: String
  var weight: Double
  final let counter: Counted.Counter?

  init(_ name: String, weight: Double = 1, counter: Counted.Counter? = nil) {
    self.name = name
    self.weight = weight
    self.counter = counter
    counter?.living += 1
  }

  deinit { counter?.living -= 1 }
}

/// A class below it.
final class Dog: Animal {
  let tricks = ["sit", "roll"]
}

/// One that no state knows.
final class Puppy: Animal {}

/// A structure.
struct Point: LuaObject, Comparable, CustomStringConvertible {
  var x: Double
  var y: Double

  static func < (left: Point, right: Point) -> Bool { left.length < right.length }

  var length: Double { (x * x + y * y).squareRoot() }
  var description: String { "(\(x), \(y))" }
}

enum Color: String, LuaValueConvertible {
  case red, green
}

struct Refusal: Error, Equatable {
  let reason: String
}

extension LuaVM {
  func defineAnimals() throws {
    let animals = LuaClass<Animal>("Animal") {
      $0.initializer { (name: String) in Animal(name) }
      $0.initializer("heavy") { (name: String, weight: Double?) in
        Animal(name, weight: weight ?? 1000)
      }
      $0.function("isName") { (text: String) in !text.isEmpty }
      $0.property("name", \.name)
      $0.property("weight", writable: \.weight)
      $0.property("half", get: { $0.weight / 2 }) { animal, half in
        if half < 0 { throw Refusal(reason: "negative") }
        animal.weight = half * 2
      }
      $0.method("feed") { (animal, amount: Double) in animal.weight += amount }
      $0.method("outweighs") { (animal, other: Animal) in animal.weight > other.weight }
      $0.method("refuse") { (_, reason: String) throws in throw Refusal(reason: reason) }
      $0.method("itself") { $0 }
      $0.method("sizes") { LuaResults($0.weight, $0.name, nil as Int?, [1, 2]) }
    }
    let dogs = LuaClass<Dog>("Dog", inheriting: animals) {
      $0.initializer { (name: String) in Dog(name) }
      $0.property("tricks", \.tricks)
      $0.method("itself") { (dog) in LuaResults(dog, "a dog") }
    }
    try define(animals)
    try define(dogs)
  }

  func definePoints() throws {
    try define(
      LuaClass<Point>("Point") {
        $0.initializer { (x: Double, y: Double) in Point(x: x, y: y) }
        $0.property("x", writable: \.x)
        $0.property("y", \.y)
        $0.mutatingMethod("move") { (point: inout Point, dx: Double, dy: Double) in
          point.x += dx
          point.y += dy
        }
        $0.mutatingMethod("spoil") { (point: inout Point, reason: String) throws -> Double in
          point.x = -1
          throw Refusal(reason: reason)
        }
        $0.metamethod(.add) { (a: Point, b: Point) in Point(x: a.x + b.x, y: a.y + b.y) }
        $0.metamethod(.multiply) { (a: LuaValue, b: LuaValue) in
          LuaResults(a == .integer(2), b == .integer(2))
        }
        $0.metamethod(.length) { (point: Point) in point.length }
      })
  }
}
