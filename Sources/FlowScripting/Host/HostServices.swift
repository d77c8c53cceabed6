@_spi(Scripting) internal import LuaVM

/// A part of a host: what one of the files above it keeps there, such as types of Lua, caches and settings.
///
/// It stands on a higher floor than the host, which knows it by this protocol alone, and is made when it is first needed. It
/// belongs to the thread of the host, and ends with it.
protocol HostService: AnyObject {
  /// The host is about to be closed: its state still works.
  func hostWillClose(_ host: ScriptHost)
  /// The state of the host is closed, with all finalizers.
  func hostDidClose(_ host: ScriptHost)
}

extension HostService {
  func hostWillClose(_ host: ScriptHost) {}
  func hostDidClose(_ host: ScriptHost) {}
}

/// The services of a host, in the order in which they were made.
struct HostServices {
  // A few, so that a search among their kinds costs less than hashing one; apart, so that it retains none of them.
  private var kinds: ContiguousArray<ObjectIdentifier> = []
  private var services: ContiguousArray<any HostService> = []

  subscript<Service: HostService>(_ kind: Service.Type) -> Service? {
    guard let index = kinds.firstIndex(of: ObjectIdentifier(kind)) else { return nil }
    // Safe: `add` stores it under its own type.
    return unsafeDowncast(services[index], to: kind)
  }

  mutating func add<Service: HostService>(_ service: Service) {
    kinds.append(ObjectIdentifier(Service.self))
    services.append(service)
  }

  /// Those that stand on others, which were made before, come first.
  var latestFirst: [any HostService] { services.reversed() }
}

extension ScriptHost {
  /// A service that has been needed; nil for one that hasn't.
  func existing<Service: HostService>(_ kind: Service.Type) -> Service? { services?[kind] }

  /// A service, made with the first call. A host that is closed doesn't keep what it makes.
  func service<Service: HostService>(
    _ kind: Service.Type = Service.self, _ make: () throws -> Service
  ) rethrows -> Service {
    if let known = services?[kind] { return known }
    let made = try make()
    services?.add(made)
    return made
  }
}

/// A type of objects that few scripts hold: it is made with the first of them.
final class LazyType<Object: AnyObject>: HostService {
  let type: LuaObjectType<Object>

  init(_ type: LuaObjectType<Object>) { self.type = type }
}
