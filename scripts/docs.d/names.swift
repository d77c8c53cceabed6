// Declarations that the snippets of documentation comments use and don't show; see comments.lua.
import FlowEngine
import FlowNodes
import FlowScripting
import LuaVM

// MARK: Ops and flows

// Nothing runs this code.
var loop: FlowEventLoop { fatalError() }
var mailbox: LoopMailbox { fatalError() }
var op: Op { fatalError() }
var flow: Flow { fatalError() }
var run: Run { fatalError() }
var context: OpContext { fatalError() }
var logger: any RunLogger { fatalError() }
var metrics: any RunMetrics { fatalError() }
let isUrgent = true

func makeFlow(_ path: String) -> Flow { Flow("upload") }
func makeUploadFlow() -> Flow { makeFlow("upload") }

struct LoginOp: TypedOp { func run(_ data: OpData<Self>) {} }
struct UploadOp: TypedOp { func run(_ data: OpData<Self>) {} }
struct ProOp: TypedOp { func run(_ data: OpData<Self>) {} }
struct TeamOp: TypedOp { func run(_ data: OpData<Self>) {} }
struct FreeOp: TypedOp { func run(_ data: OpData<Self>) {} }
struct MailOp: TypedOp { func run(_ data: OpData<Self>) {} }
struct AuditOp: TypedOp { func run(_ data: OpData<Self>) {} }
struct CloseOp: TypedOp { func run(_ data: OpData<Self>) {} }
struct ScaleOp: TypedOp { func run(_ data: OpData<Self>) {} }

// MARK: Tasks

struct Image: Sendable {}
let image = Image()
func fetchImage() -> FlowTask<Image> { .resolved(image) }
func scale(_ image: Image) -> Image { image }
func save(_ image: Image) {}
@concurrent func shrink(_ image: Image) async -> Image { image }

// MARK: Machines

enum MyStep { case amount, invalidAmount, tariffs, alert }
enum MyResult { case amount(Int), tariffs }
enum MyState { case country(String) }
struct Transfer {}

struct MyNavigator: TransitionNavigator {
  func navigate(
    _ transition: MachineTransition<MyStep>, to step: MyStep, state: MyState, context: OpContext
  ) async throws -> MyResult { .tariffs }
}

struct MyReducer: StateReducer {
  func reduce(_ state: MyState, with result: MyResult) async throws -> Reduction<MyState, Transfer>
  {
    .continue(state)
  }
}

struct TransferDSL: MachineDSLBuilder {
  typealias Step = MyStep
  typealias StepResult = MyResult
  typealias State = MyState
  enum Event { case error }
  static var dsl: MachineDSL<Self> { MachineDSL {} }
}

var machine: Machine<MyStep, MyResult, MyState, Transfer> { fatalError() }

func askAmount(_ state: MyState) async throws -> Int { 0 }

// MARK: Lua

var vm: LuaVM { fatalError() }
var host: ScriptHost { fatalError() }
var function: LuaReference { fatalError() }
var add: LuaReference { fatalError() }
var find: LuaReference { fatalError() }
var notify: LuaReference { fatalError() }

struct Point: LuaObject {
  var x: Double
  var y: Double
}

struct Vector: LuaObject {
  var elements: [Double]
  func scaled(by factor: Double) -> Vector { Vector(elements: elements.map { $0 * factor }) }
}

struct Store: Sendable { func name(of id: Int) async throws -> String { "" } }
let store = Store()
func shutdownRequest() async throws {}
