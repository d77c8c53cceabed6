import CFlowLua
import CLua
public func vmprobe() -> Int32 { flowlua_probe() + Int32(lua_version(nil)) }
