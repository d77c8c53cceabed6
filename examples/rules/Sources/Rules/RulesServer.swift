public import FlowEngine

/// Rules of many tenants: each tenant has a host that stays, and its requests run side by side.
public actor RulesServer {
  private let limits: Limits
  private let customers: Customers
  private let metrics: any RunMetrics & Sendable
  private var tenants: [String: Tenant] = [:]
  private var isShuttingDown = false

  public init(
    limits: Limits = Limits(), customers: Customers, metrics: any RunMetrics & Sendable
  ) {
    self.limits = limits
    self.customers = customers
    self.metrics = metrics
  }

  /// Adds a tenant, or gives it another script. Requests that run end with the old one.
  public func deploy(_ name: String, script: String) async throws(Problem) {
    let tenant: Tenant
    do {
      tenant = try await Tenant(name, script: script, limits: limits, metrics: metrics)
    } catch {
      throw Problem(error)
    }
    let old = isShuttingDown ? tenant : tenants.updateValue(tenant, forKey: name)
    await old?.shutdown(grace: limits.time * 2)
  }

  /// The verdict of a tenant's rule. Cancelling the calling task stops this request alone.
  public func decide(
    _ order: Order, for name: String, key: String
  ) async throws(Problem) -> Verdict {
    guard !isShuttingDown, let tenant = tenants[name] else {
      throw Problem(.noTenant, "there is no tenant '\(name)'")
    }
    do { return try await tenant.decide(order, key: key, customers) } catch { throw Problem(error) }
  }

  /// Ends all tenants; what still runs after the grace is cancelled.
  public func shutdown(grace: Duration = .seconds(5)) async {
    isShuttingDown = true
    let open = tenants.values
    tenants = [:]
    await withTaskGroup { group in
      for tenant in open { group.addTask { await tenant.shutdown(grace: grace) } }
    }
  }
}
