import FlowEngine

/// A line of an order. It is `Codable`, so scripts see it as a table, `{ article = "apples", amount = 3 }`.
struct OrderLine: Codable, Sendable {
  var article: String
  var amount: Int
}

/// The state that the jobs of all clients share: part of the program, and safe to use from any thread.
final class Shop: Sendable {
  let prices = ["apples": 40, "pears": 55, "quinces": 120]
  let warehouse = Warehouse()
  /// Cents by the names of customers.
  private let balances = Locked(["Ada": 10_000, "Bob": 100])

  func price(of article: String) throws -> Int {
    guard let cents = prices[article] else {
      throw FlowError(.error, "there is no article '\(article)'")
    }
    return cents
  }

  func balance(of customer: String) -> Int { balances.withLock { $0[customer] ?? 0 } }

  func charge(_ cents: Int, to customer: String) throws {
    try balances.withLock { balances in
      let balance = balances[customer] ?? 0
      guard (0...balance).contains(cents) else {
        throw FlowError(.error, "\(customer) can't pay \(cents) cents")
      }
      balances[customer] = balance - cents
    }
  }
}

/// Stands for a service that is reached over the network.
actor Warehouse {
  private var lastReservation = 0
  /// The traces of the requests, which a real service would get as a header.
  private(set) var traceparents: [ByteString?] = []

  func reserve(_ line: OrderLine, traceparent: ByteString?) async throws -> String {
    traceparents.append(traceparent)
    lastReservation += 1
    return "\(lastReservation): \(line.amount) \(line.article)"
  }
}
