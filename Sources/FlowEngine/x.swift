import CFlowSystem

public func probe() -> Int32 { flowsystem_probe() }
