/// A class of objects of a Swift type for scripts: written once, and defined in any number of
/// states by `LuaVM.define`.
///
/// ```swift
/// let points = LuaClass<Point>("Point") {
///   $0.initializer { (x: Double, y: Double) in Point(x: x, y: y) }
///   $0.property("x", writable: \.x)
///   $0.property("y", writable: \.y)
///   $0.method("distance") { (p, other: Point) in hypot(p.x - other.x, p.y - other.y) }
///   $0.metamethod(.add) { (a: Point, b: Point) in Point(x: a.x + b.x, y: a.y + b.y) }
/// }
/// try vm.define(points)
/// ```
///
/// A script then writes `Point(3, 4).x` and `p:distance(q)`. Objects of a type that is `Equatable`,
/// `Comparable` or `CustomStringConvertible` can be compared with `==` and `<`, and have a `tostring`.
///
/// Arguments are converted by the types of the closure's parameters; `LuaValue` takes any, optionals
/// take nil, and further arguments are ignored, as everywhere in Lua. A wrong one raises an error that
/// names the script's line, the method and the argument: `bad argument #1 to 'Point:distance' (Point
/// expected, got nil)`. An error thrown by a closure is raised in the script; `LuaVM.call` throws it
/// again, unchanged. Closures run on the state's thread.
public final class LuaClass<Object: LuaObject> {
  /// The name in scripts and messages.
  @usableFromInline package let name: String

  @usableFromInline
  var members = ClassMembers()

  /// Describes a class.
  ///
  /// - Parameters:
  ///   - name: The name in scripts and messages.
  ///   - refusesUnknownMembers: Whether reading a member that there isn't is an error, `Point has no member 'lenght' (did you
  ///     mean 'length'?)`, instead of nil.
  ///   - build: Adds the members.
  public init(
    _ name: String, refusesUnknownMembers: Bool = false, _ build: (LuaClass) -> Void = { _ in }
  ) {
    self.name = name
    members.refusesUnknown = refusesUnknownMembers
    members.addConformances(of: Object.self, name)
    build(self)
  }

  /// Describes a class that has the members of another one, of a Swift superclass, too, and refuses unknown ones if that
  /// does. Its own ones replace those of the same name; initializers and functions aren't taken over.
  ///
  /// - Parameters:
  ///   - name: The name in scripts and messages.
  ///   - parent: The other class.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  ///   - build: Adds the members.
  public init<Parent>(
    _ name: String, inheriting parent: LuaClass<Parent>, file: StaticString = #fileID,
    line: UInt = #line, _ build: (LuaClass) -> Void = { _ in }
  ) {
    guard Object.self is Parent.Type else {
      misuse(
        "class \(name) inherits \(parent.name), but \(Object.self) is no \(Parent.self)",
        file: file,
        line: line)
    }
    self.name = name
    members = parent.members.inherited()
    members.addConformances(of: Object.self, name)
    build(self)
  }

  // MARK: Properties

  /// Adds a property that scripts can read.
  ///
  /// ```swift
  /// let points = LuaClass<Point>("Point") { $0.property("x", \.x) }
  /// ```
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - path: The property.
  @inlinable
  public func property<Value: LuaValueConvertible>(
    _ name: String, _ path: KeyPath<Object, Value>
  ) {
    property(name) { $0[keyPath: path] }
  }

  /// Adds a property that scripts can read and set.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - path: The property.
  @inlinable
  public func property<Value: LuaValueConvertible>(
    _ name: String, writable path: WritableKeyPath<Object, Value>
  ) {
    property(name, get: { $0[keyPath: path] }, set: { $0[keyPath: path] = $1 })
  }

  /// Adds a property that scripts can read.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - get: Returns the value; an error it throws is raised.
  @inlinable
  public func property<Value: LuaValueConvertible>(
    _ name: String, get: @escaping (Object) throws -> Value
  ) {
    let label: String = "\(self.name).\(name)"
    members.setters[name] = nil
    members.getters[name] = { call in
      var signature = Signature(label, of: call)
      try get(try signature.object()).addResult(to: call)
      return call.answer()
    }
  }

  /// Adds a property that scripts can read and set.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - get: Returns the value; an error it throws is raised.
  ///   - set: Sets the value, which has been converted; an error it throws is raised, and leaves a
  ///     structure as it was.
  @inlinable
  public func property<Value: LuaValueConvertible>(
    _ name: String, get: @escaping (Object) throws -> Value,
    set: @escaping (inout Object, Value) throws -> Void
  ) {
    property(name, get: get)
    let label: String = "\(self.name).\(name)"
    members.setters[name] = { call in
      var signature = Signature(label, of: call)
      let value: Value = try signature.newValue()
      try signature.withObject { try set(&$0, value) }
      return call.answer()
    }
  }

  /// Adds what `object[key]` reads where the class has no method or property of that name, such as the elements of a list.
  ///
  /// ```swift
  /// let vectors = LuaClass<Vector>("Vector") {
  ///   $0.index { (vector, place: Int) in vector.elements.indices.contains(place - 1) ? vector.elements[place - 1] : nil }
  /// }
  /// ```
  ///
  /// A key of another type is one that there isn't.
  ///
  /// - Parameter get: Returns the value for a key; an error it throws is raised.
  @inlinable
  public func index<Key: LuaValueConvertible, Value: LuaResult>(
    _ get: @escaping (Object, Key) throws -> Value
  ) {
    let label: String = "\(self.name).[]"
    members.newIndex = nil
    members.index = { call in
      var signature = Signature(label, of: call)
      let object: Object = try signature.object()
      guard let key = try? Key.fromArgument(2, of: call) else { return nil }
      try get(object, key).addResult(to: call)
      return call.answer()
    }
  }

  /// Adds what `object[key]` reads, as above, and sets.
  ///
  /// - Parameters:
  ///   - get: Returns the value for a key; an error it throws is raised.
  ///   - set: Sets a value, which has been converted; an error it throws is raised, and leaves a structure as it was.
  @inlinable
  public func index<Key: LuaValueConvertible, Value: LuaValueConvertible>(
    get: @escaping (Object, Key) throws -> Value,
    set: @escaping (inout Object, Key, Value) throws -> Void
  ) {
    index(get)
    let label: String = "\(self.name).[]"
    members.newIndex = { call in
      var signature = Signature(label, of: call)
      guard let key = try? Key.fromArgument(2, of: call) else { return nil }
      let value: Value = try signature.newValue()
      try signature.withObject { try set(&$0, key, value) }
      return call.answer()
    }
  }

  // MARK: Methods

  /// Adds a method, for `object:name(…)`.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - body: Gets the object and the arguments, and returns the result; `LuaResults` are several.
  @inlinable
  public func method<each Argument: LuaValueConvertible, Result: LuaResult>(
    _ name: String, _ body: @escaping (Object, repeat each Argument) throws -> Result
  ) {
    let label: String = "\(self.name):\(name)"
    members.methods[name] = { call in
      var signature = Signature(label, of: call)
      let object: Object = try signature.object()
      let result = try body(object, repeat try signature.argument((each Argument).self))
      try result.addResult(to: call)
      return call.answer()
    }
  }

  /// Adds a method without a result.
  @inlinable
  public func method<each Argument: LuaValueConvertible>(
    _ name: String, _ body: @escaping (Object, repeat each Argument) throws -> Void
  ) {
    method(name) { (object: Object, arguments: repeat each Argument) in
      try body(object, repeat each arguments)
      return NoResult()
    }
  }

  /// Adds a method that changes a structure: the object that the script has is changed.
  ///
  /// ```swift
  /// let points = LuaClass<Point>("Point") {
  ///   $0.mutatingMethod("move") { (point: inout Point, dx: Double) in point.x += dx }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - body: Gets the object and the arguments, and returns the result; `LuaResults` are several. If
  ///     it throws, the object is as before.
  @inlinable
  public func mutatingMethod<each Argument: LuaValueConvertible, Result: LuaResult>(
    _ name: String, _ body: @escaping (inout Object, repeat each Argument) throws -> Result
  ) {
    let label: String = "\(self.name):\(name)"
    members.methods[name] = { call in
      var signature = Signature(label, of: call)
      // First: a wrong one is reported as such, whatever the arguments are.
      _ = try signature.object() as Object
      let arguments = (repeat try signature.argument((each Argument).self))
      let result = try signature.withObject { (object: inout Object) in
        try body(&object, repeat each arguments)
      }
      try result.addResult(to: call)
      return call.answer()
    }
  }

  /// Adds a mutating method without a result.
  @inlinable
  public func mutatingMethod<each Argument: LuaValueConvertible>(
    _ name: String, _ body: @escaping (inout Object, repeat each Argument) throws -> Void
  ) {
    mutatingMethod(name) { (object: inout Object, arguments: repeat each Argument) in
      try body(&object, repeat each arguments)
      return NoResult()
    }
  }

  /// Adds a method that reads its arguments itself.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - function: The method; the object is its first argument, which it checks itself.
  package func method(_ name: String, function: @escaping LuaFunction) {
    members.methods[name] = function
  }

  /// Adds a metamethod, for operators and `tostring`. One event may have several, for operands of different types: the
  /// latest one counts that takes the operands.
  ///
  /// ```swift
  /// let vectors = LuaClass<Vector>("Vector") {
  ///   $0.metamethod(.multiply) { (vector: Vector, factor: Double) in vector.scaled(by: factor) }
  ///   $0.metamethod(.multiply) { (factor: Double, vector: Vector) in vector.scaled(by: factor) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - metamethod: Which one.
  ///   - body: Gets all operands, of any types that can be converted; one of them is an object of the
  ///     class.
  @inlinable
  public func metamethod<each Argument: LuaValueConvertible, Result: LuaResult>(
    _ metamethod: LuaMetamethod, _ body: @escaping (repeat each Argument) throws -> Result
  ) {
    let label: String = "\(name).\(metamethod.rawValue)"
    // Not one that the class above has, or Swift's conformance.
    let isFurther = !members.ownEvents.insert(metamethod.rawValue).inserted
    let earlier = isFurther ? members.metamethods[metamethod.rawValue] : nil
    members.metamethods[metamethod.rawValue] = LuaMember { call in
      var signature = Signature(label, of: call)
      let operands: (repeat each Argument)
      do { operands = (repeat try signature.argument((each Argument).self)) } catch {
        guard let earlier else { throw error }
        return try earlier.function(call)
      }
      try body(repeat each operands).addResult(to: call)
      return call.answer()
    }
  }

  // MARK: Making objects

  /// Adds a function that makes objects: `Point.new(3, 4)`. The first one is also called by the name
  /// of the class alone: `Point(3, 4)`.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - body: Makes the object.
  @inlinable
  public func initializer<each Argument: LuaValueConvertible>(
    _ name: String = "new", _ body: @escaping (repeat each Argument) throws -> Object
  ) {
    let label: String = "\(self.name).\(name)"
    members.functions[name] = .typed(label, firstArgument: 1, body)
    if members.initializer == nil {
      // The class itself is the first argument.
      members.initializer = .typed(label, firstArgument: 2, body)
    }
  }

  /// Adds a function that needs no object: `Point.origin()`.
  ///
  /// ```swift
  /// let points = LuaClass<Point>("Point") { $0.function("origin") { Point(x: 0, y: 0) } }
  /// ```
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - body: Gets the arguments, and returns the result; `LuaResults` are several.
  @inlinable
  public func function<each Argument: LuaValueConvertible, Result: LuaResult>(
    _ name: String, _ body: @escaping (repeat each Argument) throws -> Result
  ) {
    members.functions[name] = .typed("\(self.name).\(name)", firstArgument: 1, body)
  }

  /// Adds a function without a result.
  @inlinable
  public func function<each Argument: LuaValueConvertible>(
    _ name: String, _ body: @escaping (repeat each Argument) throws -> Void
  ) {
    function(name) { (arguments: repeat each Argument) in
      try body(repeat each arguments)
      return NoResult()
    }
  }
}

/// An event for which objects can have a metamethod; see section 2.4 of the Lua manual.
///
/// ```swift
/// let points = LuaClass<Point>("Point") {
///   $0.metamethod(.add) { (a: Point, b: Point) in Point(x: a.x + b.x, y: a.y + b.y) }
/// }
/// ```
public enum LuaMetamethod: String, Sendable {
  /// `a + b`.
  case add = "__add"
  /// `a - b`.
  case subtract = "__sub"
  /// `a * b`.
  case multiply = "__mul"
  /// `a / b`.
  case divide = "__div"
  /// `a // b`.
  case floorDivide = "__idiv"
  /// `a % b`.
  case remainder = "__mod"
  /// `a ^ b`.
  case power = "__pow"
  /// `-a`.
  case negate = "__unm"
  /// `a .. b`.
  case concatenate = "__concat"
  /// `#a`.
  case length = "__len"
  /// `a == b`, of two objects that aren't the same.
  case equal = "__eq"
  /// `a < b`, and `b > a`.
  case less = "__lt"
  /// `a <= b`, and `b >= a`.
  case lessOrEqual = "__le"
  /// `a(…)`.
  case call = "__call"
  /// `tostring(a)`.
  case tostring = "__tostring"
  /// `pairs(a)`.
  case pairs = "__pairs"
  /// The end of the scope of `local a <close>`.
  case close = "__close"
}

/// The members of a class, as functions that Lua can call.
@usableFromInline
struct ClassMembers {
  @usableFromInline var methods: [String: LuaFunction] = [:]
  @usableFromInline var metamethods: [String: LuaMember] = [:]
  /// The events whose metamethods the class itself has.
  @usableFromInline var ownEvents: Set<String> = []
  /// Called with an object and the property's name.
  @usableFromInline var getters: [String: LuaFunction] = [:]
  /// Called with an object, the property's name and the new value.
  @usableFromInline var setters: [String: LuaFunction] = [:]
  /// Called for other keys; nil for a key that isn't one.
  @usableFromInline var index: ((LuaCall) throws -> LuaAnswer?)?
  @usableFromInline var newIndex: ((LuaCall) throws -> LuaAnswer?)?
  /// Whether reading a member that there isn't is an error.
  var refusesUnknown = false
  @usableFromInline var functions: [String: LuaMember] = [:]
  /// Called with the class and the arguments.
  @usableFromInline var initializer: LuaMember?

  /// Those of them that a class inherits.
  func inherited() -> ClassMembers {
    var members = self
    members.functions = [:]
    members.ownEvents = []
    members.initializer = nil
    return members
  }

  /// Adds the operators that a type has by conformance.
  mutating func addConformances<Object: LuaObject>(of type: Object.Type, _ name: String) {
    if type is any Equatable.Type {
      metamethods["__eq"] = LuaMember { call in
        // Also called where the other one isn't an object of this type.
        guard let left = try? type.fromArgument(1, of: call) as? any Equatable,
          let right = try? type.fromArgument(2, of: call)
        else { return call.answer(.boolean(false)) }
        return call.answer(.boolean(left.isEqual(to: right)))
      }
    }
    if type is any Comparable.Type {
      for (event, isIncluded) in [("__lt" as String, false), ("__le", true)] {
        metamethods[event] = LuaMember { call in
          var signature = Signature("\(name).\(event)", of: call)
          let left = try signature.argument(type)
          let right = try signature.argument(type)
          guard let left = left as? any Comparable else { return call.answer(.boolean(false)) }
          return call.answer(.boolean(left.isLess(than: right, orEqual: isIncluded)))
        }
      }
    }
    if type is any CustomStringConvertible.Type {
      metamethods["__tostring"] = LuaMember { call in
        var signature = Signature("\(name).__tostring", of: call)
        let object: Object = try signature.object()
        return call.answer(.string(ByteString(String(describing: object))))
      }
    }
  }
}

extension Equatable {
  fileprivate func isEqual(to other: Any) -> Bool { (other as? Self) == self }
}

extension Comparable {
  fileprivate func isLess(than other: Any, orEqual isIncluded: Bool) -> Bool {
    guard let other = other as? Self else { return false }
    return isIncluded ? self <= other : self < other
  }
}

/// A function of a class.
@usableFromInline
struct LuaMember {
  @usableFromInline let function: LuaFunction

  @usableFromInline
  init(_ function: @escaping LuaFunction) {
    self.function = function
  }

  /// One whose arguments and results are converted; `label` is its name in messages.
  @inlinable
  static func typed<each Argument: LuaValueConvertible, Result: LuaResult>(
    _ label: String, firstArgument: Int,
    _ body: @escaping (repeat each Argument) throws -> Result
  ) -> LuaMember {
    LuaMember { call in
      var signature = Signature(label, of: call, hidden: firstArgument - 1)
      try body(repeat try signature.argument((each Argument).self)).addResult(to: call)
      return call.answer()
    }
  }
}
