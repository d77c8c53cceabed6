/// What a class has, as functions that Lua can call.
@usableFromInline
struct ClassMembers {
  @usableFromInline var methods: [String: LuaFunction] = [:]
  @usableFromInline var metamethods: [String: LuaMember] = [:]
  /// Called with an object and the property's name.
  @usableFromInline var getters: [String: LuaFunction] = [:]
  /// Called with an object, the property's name and the new value.
  @usableFromInline var setters: [String: LuaFunction] = [:]
  @usableFromInline var functions: [String: LuaMember] = [:]
  /// Called with the class and the arguments.
  @usableFromInline var initializer: LuaMember?

  /// Those of them that a class inherits.
  func inherited() -> ClassMembers {
    var members = self
    members.functions = [:]
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
      for (event, isIncluded) in [("__lt", false), ("__le", true)] {
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
