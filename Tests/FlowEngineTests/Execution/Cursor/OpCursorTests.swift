@testable import FlowEngine
import Testing

@Suite("The cursor of an op")
struct OpCursorTests {
  @Test("An attempt without tasks and cleanups ends with its body")
  func bodyOnly() {
    var cursor = OpCursor()
    cursor.bodyEnded()
    #expect(cursor.advance(hasResources: false, hasCleanups: false) == .endAttempt)
  }

  @Test("While the body executes, nothing else continues the op")
  func body() {
    var cursor = OpCursor()
    #expect(cursor.advance(hasResources: true, hasCleanups: true) == .wait)
    #expect(cursor.phase == .body)
  }

  @Test("Tasks end before the attempt does")
  func tasks() {
    var cursor = OpCursor()
    cursor.bodyEnded()
    #expect(cursor.advance(hasResources: true, hasCleanups: false) == .endTasks)
    // They are awaited.
    #expect(cursor.phase == .tasks)
    #expect(cursor.advance(hasResources: true, hasCleanups: false) == .endTasks)
    #expect(cursor.tasksEnded(hasCleanups: false) == .endAttempt)
  }

  @Test("Cleanups are called one by one within their shield")
  func cleanups() {
    var cursor = OpCursor()
    cursor.bodyEnded()
    #expect(cursor.advance(hasResources: true, hasCleanups: true) == .endTasks)
    #expect(cursor.tasksEnded(hasCleanups: true) == .beginCleanups)
    #expect(cursor.isCleaningUp)
    #expect(cursor.advance(hasResources: true, hasCleanups: true) == .callCleanup)
    #expect(cursor.advance(hasResources: true, hasCleanups: true) == .callCleanup)
    #expect(cursor.advance(hasResources: true, hasCleanups: false) == .closeCleanups)
    #expect(cursor.advance(hasResources: true, hasCleanups: false) == .endTasks)
    #expect(cursor.tasksEnded(hasCleanups: false) == .endCleanups)
    #expect(!cursor.isCleaningUp)
  }

  @Test("Cleanups that tasks of cleanups register run within the same shield")
  func cleanupsOfCleanups() {
    var cursor = OpCursor()
    cursor.bodyEnded()
    #expect(cursor.tasksEnded(hasCleanups: true) == .beginCleanups)
    #expect(cursor.advance(hasResources: true, hasCleanups: false) == .closeCleanups)
    #expect(cursor.tasksEnded(hasCleanups: true) == .openCleanups)
    #expect(cursor.advance(hasResources: true, hasCleanups: true) == .callCleanup)
    #expect(cursor.advance(hasResources: true, hasCleanups: false) == .closeCleanups)
    #expect(cursor.tasksEnded(hasCleanups: false) == .endCleanups)
  }

  @Test("A decision leads to a delay, and the delay to the next attempt")
  func retry() {
    var cursor = OpCursor()
    cursor.decides()
    #expect(cursor.advance(hasResources: false, hasCleanups: false) == .decide)
    cursor.delayed()
    #expect(cursor.advance(hasResources: false, hasCleanups: false) == .beginAttempt)
    cursor.begin()
    #expect(cursor.phase == .body)
  }
}
