import FlowEngine
import FlowScripting
import LuaVM

/// A request: an order that a rule decides about.
public struct Order: Codable, Sendable {
  /// One of its lines.
  public struct Line: Codable, Sendable {
    public var article: String
    public var cents: Int
    public var amount: Int

    public init(article: String, cents: Int, amount: Int) {
      (self.article, self.cents, self.amount) = (article, cents, amount)
    }
  }

  public var customer: String
  public var lines: [Line]

  public init(customer: String, lines: [Line]) {
    (self.customer, self.lines) = (customer, lines)
  }
}

/// The answer of a rule.
public struct Verdict: Codable, Sendable, Equatable {
  public var decision: String
  public var discount: Int

  public init(decision: String, discount: Int) {
    (self.decision, self.discount) = (decision, discount)
  }
}

/// An error as tenants see it, with the place in their script.
public struct Problem: Error, Sendable, Equatable {
  public enum Kind: Sendable, Equatable {
    case noTenant, badRule, tooSlow, tooMuch, cancelled, failed
  }

  public let kind: Kind
  public let message: String
  public let line: Int?

  init(_ kind: Kind, _ message: String, line: Int? = nil) {
    (self.kind, self.message, self.line) = (kind, message, line)
  }

  init(_ error: any Error) {
    if let problem = error as? Problem {
      self = problem
      return
    }
    let error = FlowError.from(error)
    let kind: Kind =
      switch error.kind {
      case .timeout, .time: .tooSlow
      case .memory, .instructions: .tooMuch
      case .cancelled: .cancelled
      default: .failed
      }
    self.init(kind, String(error.message), line: error.place?.line)
  }
}

/// The context of a request, as a tracing library passes it along.
public enum Trace {
  @TaskLocal public static var id = "none"
}

/// A service of the program that rules may ask: it knows customers, and in which traces it was asked.
public actor Customers {
  struct Unknown: Error { let password = "not for tenants" }

  private var scores: [String: Double]
  public private(set) var traces: Set<String> = []

  public init(_ scores: [String: Double]) { self.scores = scores }

  func score(of customer: String) throws -> Double {
    traces.insert(Trace.id)
    guard let score = scores[customer] else { throw Unknown() }
    return score
  }
}

/// An order as scripts see it.
final class OrderObject: LuaObject, FlowValueConvertible, Sendable {
  let order: Order
  private let customers: Customers

  init(_ order: Order, _ customers: Customers) {
    self.order = order
    self.customers = customers
  }

  static let luaClass: @Sendable () -> LuaClass<OrderObject> = {
    LuaClass<OrderObject>("Order", refusesUnknownMembers: true) {
      $0.property("customer", \.order.customer)
      $0.property("total") { $0.order.lines.reduce(0) { $0 + $1.cents * $1.amount } }
      $0.index { (object, place: Int) -> String? in
        let lines = object.order.lines
        return lines.indices.contains(place - 1) ? lines[place - 1].article : nil
      }
      $0.asyncMethod("score") { (object) async throws -> Double in
        try await object.customers.score(of: object.order.customer)
      }
    }
  }
}
