// Child tasks of a TaskGroup that do nothing, each begun when the one before has ended, as the ops of a
// flow are. Prints the ns of time and of CPU time of a task.
//
//   task_group COUNT

import Glibc

guard CommandLine.arguments.count == 2, let count = Int(CommandLine.arguments[1]), count > 0 else {
  fatalError("usage: task_group COUNT")
}

let begun = clock()
let elapsed = await ContinuousClock().measure {
  await withTaskGroup(of: Int.self) { group in
    var sum = 0
    for _ in 0..<count {
      group.addTask { 1 }
      sum += await group.next() ?? 0
    }
    precondition(sum == count)
  }
}
let used = Double(clock() - begun) / Double(CLOCKS_PER_SEC)
print(elapsed / .nanoseconds(1) / Double(count), used * 1e9 / Double(count))
