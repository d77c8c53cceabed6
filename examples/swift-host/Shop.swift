import FlowEngine

/// The state of the program, which scripts only see through its ops. Confined to the main thread.
final class Shop {
  private var stock: [String: Int] = ["apples": 5, "pears": 3, "quinces": 1]
  private var lastReservation = 100

  func stock(of article: String) throws -> Int {
    guard let amount = stock[article] else {
      throw FlowError(.error, "there is no article '\(article)'")
    }
    return amount
  }

  func reserve(_ amount: Int, of article: String) -> Int {
    stock[article, default: 0] -= amount
    lastReservation += 1
    return lastReservation
  }
}

/// A typed op: what it needs and gives are its properties. Scripts use it as it is.
struct StockOp: TypedOp {
  let shop: Shop
  let article = Input<String>("article")
  let stock = Output<Int>("stock")

  var configuration: OpConfiguration {
    OpConfiguration(doc: "Looks up how many of an article there are.")
  }

  func run(_ data: OpData<StockOp>) throws {
    data.stock = try shop.stock(of: data.article)
  }
}

/// One that waits, and that scripts make with an argument: `ReserveOp("who")`.
struct ReserveOp: AsyncTypedOp {
  let shop: Shop
  let customer: String
  let article = Input<String>("article")
  let amount = Input<Int>("amount")
  let reservation = Output<String>("reservation")

  var configuration: OpConfiguration { OpConfiguration(timeout: .seconds(5)) }

  func run(_ data: OpData<ReserveOp>) async throws {
    // All other work continues meanwhile.
    try await data.sleep(for: .milliseconds(10))
    let number = shop.reserve(data.amount, of: data.article)
    data.reservation = "\(number): \(data.amount) \(data.article) for \(customer)"
  }
}
