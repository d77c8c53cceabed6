import FlowEngine
import FlowScripting
import LuaVM

// The things that scripts can use here: four kinds of ops, and objects of a class.

/// A typed op: its inputs and outputs are properties. It runs on the thread of the job, and returns at once.
struct PriceOp: TypedOp {
  let shop: Shop
  let lines = Input<[OrderLine]>("lines")
  let cents = Output<Int>("cents")

  var configuration: OpConfiguration { OpConfiguration(doc: "Adds up the prices of an order.") }

  func run(_ data: OpData<PriceOp>) throws {
    data.cents = try data.lines.reduce(0) { sum, line in
      // A script passes any amount, and an overflow would end the server.
      let price = try shop.price(of: line.article).multipliedReportingOverflow(by: line.amount)
      let total = sum.addingReportingOverflow(price.partialValue)
      if price.overflow || total.overflow { throw FlowError(.error, "the order is too large") }
      return total.partialValue
    }
  }
}

/// An async op: other ops of the job run while it waits. Retries and time limits are declared.
struct ReserveOp: AsyncTypedOp {
  let shop: Shop
  let line = Input<OrderLine>("line")
  let reservation = Output<String>("reservation")

  var configuration: OpConfiguration {
    OpConfiguration(
      doc: "Reserves a line of an order.", retry: RetryPolicy(attempts: 3, delay: .seconds(0.1)),
      timeout: .seconds(60))
  }

  func run(_ data: OpData<ReserveOp>) async throws {
    // The header of the request: the service continues the trace of the job.
    let traceparent = data.context.traceContext?.traceparent
    data.reservation = try await shop.warehouse.reserve(data.line, traceparent: traceparent)
  }
}

/// A concurrent op computes for long: on another thread, with copies of its inputs.
struct InvoiceOp: ConcurrentTypedOp {
  let lines = Input<[OrderLine]>("lines")
  let cents = Input<Int>("cents")
  let invoice = Output<String>("invoice")

  @concurrent func run(_ data: inout ConcurrentOpData<InvoiceOp>) async throws {
    var number = UInt32(truncatingIfNeeded: data.cents)
    for line in data.lines {
      for byte in line.article.utf8 { number = number &* 31 &+ UInt32(byte) }
    }
    data.invoice = "invoice \(number)"
  }
}

/// A class of ops: a script makes one with an argument, `flow.ops.NotifyOp "Ada"`. Its body is a closure.
func notifyOp() -> OpClass {
  OpClass("NotifyOp", doc: "Tells a customer about an order.") { arguments in
    let customer = try arguments.string(1)
    return Op("NotifyOp", needs: ["invoice": "string"]) { context in
      context.log("\(customer) gets \(try context.value("invoice", as: String.self))")
    }
  }
}

/// An object for scripts: `local account = Account "Ada"; account:charge(120)`. It belongs to one job.
final class Account: LuaObject {
  let owner: String
  private let shop: Shop

  init(owner: String, shop: Shop) {
    self.owner = owner
    self.shop = shop
  }

  var balance: Int { shop.balance(of: owner) }

  /// An error that it throws is raised in the script, which can catch it.
  func charge(_ cents: Int) throws { try shop.charge(cents, to: owner) }
}

extension ScriptHost {
  /// Gives scripts the ops and classes of the server.
  func registerShop(_ shop: Shop) throws {
    register(PriceOp(shop: shop))
    register(ReserveOp(shop: shop))
    register(InvoiceOp())
    register(notifyOp())
    try vm.define(
      LuaClass<Account>("Account") {
        $0.initializer { (owner: String) in Account(owner: owner, shop: shop) }
        $0.property("owner", \.owner)
        $0.property("balance", \.balance)
        $0.method("charge") { (account, cents: Int) in try account.charge(cents) }
      })
  }
}
