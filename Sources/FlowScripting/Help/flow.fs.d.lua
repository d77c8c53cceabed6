---@meta flow.fs

---Files and folders: `flow.fs`, or `require "flow.fs"`.
---
---All functions wait without blocking: other ops continue meanwhile. A timeout or cancel ends the wait
---at once. An error of the system has the kind `error`, the number `code`, its name in `name`, such as
---`"ENOENT"`, and the path in its message. Paths are bytes in any encoding.
---@class flow.FS
local fs = {}

---The kind of an entry of a folder.
---@alias flow.FileType "file"|"directory"|"link"|"pipe"|"socket"|"device"

---The metadata of a file, folder or link.
---@class flow.FileStatus
---@field type flow.FileType
---@field size integer The number of bytes.
---@field mtime number When the content was last changed, in seconds since 1970.
---@field mode integer The permissions, such as `tonumber("644", 8)`.
---@field target string? The path that a link leads to.

---The options of `fs.list`.
---@class flow.FileListOptions
---@field recursive? boolean Whether to list the folders in the folder, too; links aren't followed.
---@field hidden? boolean Whether to list names that begin with a dot, and what is in such folders.
---@field match? string|fun(path: string, type: flow.FileType): any A pattern, or a function that returns whether to list an entry. In a pattern, `?` is a character, `*` any number of them, `[a-z]` one of a set, `[!a-z]` none of it, and `\` quotes the next character; none of them is a slash. A pattern without a slash is for the name, one with a slash for the path within the folder; its part `**` is any number of folders.
---@field type? flow.FileType The type of the entries to list.

---The options of `fs.stat`.
---@class flow.FileStatOptions
---@field follow? boolean Whether to follow a link at the end of the path.

---The options of `fs.remove`.
---@class flow.FileRemoveOptions
---@field recursive? boolean Whether to remove what is in a folder, too. Links in it are removed, not followed.

---The options of `fs.write`.
---@class flow.FileWriteOptions
---@field append? boolean Whether to add the content at the end of the file.

---The options of `fs.watch`.
---@class flow.FileWatchOptions
---@field recursive? boolean Whether to watch the folders in the folder, too, those that are made later included; links aren't followed.

---A change of a file or folder.
---@class flow.FileChange
---@field kind "created"|"changed"|"removed"|"moved"|"overflow" `"overflow"` means that there were too many changes to report all: those that can be found afterwards follow.
---@field path string The path, which begins with the path that is watched; after a move the new one.
---@field from string? The path before a move.
---@field directory boolean Whether it is a folder.

---A watch, which is called for the next change: it waits for that, and returns nil when the watch has ended.
---`tostring` shows the path. `<close>` and a generic `for` close it.
---@class flow.Watch
---@overload async fun(): flow.FileChange?
local Watch = {}

---Ends the watch. Code that waits for it gets nil.
function Watch:close() end

---Bytes to hash.
---@class flow.HashOptions
---@field bytes string

---The paths of what is in a folder, sorted by their bytes. They begin with the folder as it is given.
---@async
---@param folder string
---@param options? flow.FileListOptions
---@return string[]
function fs.list(folder, options) end

---The metadata of what is at a path, of a link itself; nil if nothing is there.
---@async
---@param path string
---@param options? flow.FileStatOptions
---@return flow.FileStatus?
function fs.stat(path, options) end

---Whether a path leads to anything. A link is followed.
---@async
---@param path string
---@return boolean
function fs.exists(path) end

---Makes a folder and those on the way to it. An existing folder is left as it is.
---@async
---@param path string
function fs.mkdir(path) end

---Removes a file, a link, or a folder, which has to be empty without `recursive`.
---@async
---@param path string
---@param options? flow.FileRemoveOptions
function fs.remove(path, options) end

---Gives a file or folder another path in the same file system, in one step. A file there is replaced.
---@async
---@param path string
---@param target string
function fs.rename(path, target) end

---Copies a file with its permissions. The copy replaces an existing file in one step.
---@async
---@param path string
---@param target string
function fs.copy(path, target) end

---The content of a file.
---@async
---@param path string
---@return string
function fs.read(path) end

---Writes a file and replaces an existing one in one step: if that fails, the file is unchanged. An
---existing file keeps its permissions, and a link stays a link. With `append` the content is added at the
---end of the file.
---@async
---@param path string
---@param content string
---@param options? flow.FileWriteOptions
function fs.write(path, content, options) end

---Watches a folder or file, and returns an iterator over its changes: `for change in fs.watch(path) do`. It
---ends with the op that has made it, or the run of that, when it is closed, and when the folder is gone.
---A file is also watched when another one replaces it.
---@async
---@param path string
---@param options? flow.FileWatchOptions
---@return flow.Watch
function fs.watch(path, options) end

---The options of `fs.lock`.
---@class flow.FileLockOptions
---@field wait boolean? Whether to wait for the process that holds the lock; true by default.

---A lock on a file; closable, as `local lock <close> = fs.lock(path)`.
---@class flow.Lock
local Lock = {}

---Releases the lock. Nothing happens if it is released already.
function Lock:close() end

---Locks a file for this code alone: no other process, and no other op of this one, has the lock at the same time. It waits
---until the lock is free. If this code holds the lock itself, it raises an error with `name = "EDEADLK"`. With `wait = false`
---the error names the process that holds the lock, also this one, and has `name = "EAGAIN"`. The file is made if there is
---none, and stays. The lock ends when it is closed, with the op or task that has taken it, and with the process, however it
---ends.
---@async
---@param path string
---@param options? flow.FileLockOptions
---@return flow.Lock
function fs.lock(path, options) end

---Makes an empty folder in `$TMPDIR` or `/tmp`, and returns its path. It is removed with all that is in
---it when the run ends that made it, or, outside of runs, when the script ends. An op that a worker executes belongs to
---the run of its flow; on another node the folder is there until the op has ended and its files are sent.
---@async
---@return string
function fs.temp_dir() end

---The hash of a file's content, or of `{ bytes = string }`, in hexadecimal digits; `"sha256"` by default.
---@async
---@param source string|flow.HashOptions
---@param algorithm? "sha256"|"sha512"|"sha1"|"md5"
---@return string
function fs.hash(source, algorithm) end

return fs
