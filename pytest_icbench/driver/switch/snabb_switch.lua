-- SPDX-License-Identifier: BSD-3-Clause
-- A switch made of Snabb's own apps, for an unmodified Snabb:
--
--   snabb snsh snabb_switch.lua bridge|wire MAC_TIMEOUT_S SOCKET...
--
-- It serves a vhost-user socket for each port (p0, p1, ...). `bridge` joins all ports by Snabb's learning bridge, `wire`
-- the first with the second, the third with the fourth. It polls without a pause until it is killed.

local S          = require("syscall")
local ffi        = require("ffi")
local config     = require("core.config")
local link       = require("core.link")
local packet     = require("core.packet")
local timer      = require("core.timer")
local net_device = require("lib.virtio.net_device")
local VhostUser  = require("apps.vhost.vhost_user").VhostUser
local bridge     = require("apps.bridge.learning").bridge

local VERSION_1 = 2^32
-- How often a port looks for messages of its front-end, in the engine's ticks of a millisecond; 500 by default, of
-- which a connection takes several.
local MESSAGE_TICKS = 5

-- DPDK's virtio-user sets features only on a device that offers VERSION_1. With mergeable buffers, which are offered
-- too, Snabb's rings already have that version's form: headers of 12 bytes, everything little endian.
local get_features = net_device.VirtioNetDevice.get_features
function net_device.VirtioNetDevice:get_features ()
   return get_features(self) + VERSION_1
end

local Port = setmetatable({}, {__index = VhostUser})

function Port:new (socket)
   local port = setmetatable(VhostUser:new({socket_path = socket, is_server = true}), {__index = Port})
   -- The engine would stand still until a front-end connects.
   assert(S.fcntl(port.listen_socket, "setfl", "nonblock"))
   port.process_qemu_timer.ticks = MESSAGE_TICKS
   return port
end

-- The original keeps features in /tmp, for front-ends that connect again without negotiating.
function Port:update_features (features)
   return features % VERSION_1
end

-- The original forgets the first region, and with it an endpoint's memory when that has ended.
function Port:free_mem_table ()
   local index = 0
   while self.mem_table[index] do
      local region = self.mem_table[index]
      ffi.C.vhost_user_unmap_guest_memory(region.mmap_pointer, region.mmap_size)
      index = index + 1
   end
   self.mem_table = {}
end

-- The front-end has gone: nothing of it is left for the next one.
function Port:stop ()
   for index = 0, 1 do
      local queue = self.dev.virtq[index]
      for _, fd in ipairs({queue.callfd or -1, queue.kickfd or -1}) do
         if fd >= 0 then ffi.C.close(fd) end
      end
   end
   if self.dev.tx.p then packet.free(self.dev.tx.p) end
   timer.cancel(self.process_qemu_timer)
   VhostUser.stop(self)
   self.dev = net_device.VirtioNetDevice:new(self)
end

-- The original takes the message that disables ring 1 for one that enables (it looks at the whole of index and state),
-- and begins when one of the two rings is there.
function Port:set_vring_enable (message)
   self.vhost_ready = message.state.num ~= 0
end

function Port:get_vring_base (message)
   VhostUser.get_vring_base(self, message)
   self.dev.virtq[message.state.index].virtq = nil
end

-- Polls one direction. A front-end that leaves senseless rings loses its connection; the others keep theirs.
function Port:poll (direction)
   local ok, reason = pcall(direction, self.dev)
   if not ok then
      print(self.socket_path..": "..tostring(reason))
      self:stop()
   end
end

function Port:pull ()
   if not self.connected then
      self:connect()
   elseif self.vhost_ready and self.dev:ready() then
      self:poll(self.dev.poll_vring_receive)
   end
end

-- A port without a front-end drops what comes for it; kept, it would reach the next one.
function Port:push ()
   if self.vhost_ready and self.dev:ready() then
      self:poll(self.dev.poll_vring_transmit)
   else
      local input = self.input.rx
      while not link.empty(input) do packet.free(link.receive(input)) end
   end
end

-- Messages are in the log in the order of events, with an error at its end.
io.stdout:setvbuf("line")
-- A front-end that ends before it has its answer is not the end of the switch.
assert(S.signal("pipe", "ign"))

local arguments = main.parameters
local mode, timeout_s = table.remove(arguments, 1), tonumber(table.remove(arguments, 1))
assert((mode == "bridge" or mode == "wire") and timeout_s and #arguments >= 2 and #arguments % 2 == 0,
       "arguments: bridge|wire MAC_TIMEOUT_S SOCKET SOCKET...")

local network, names = config.new(), {}
for index, socket in ipairs(arguments) do
   names[index] = "p"..(index - 1)
   config.app(network, names[index], Port, socket)
end
if mode == "bridge" then
   config.app(network, "bridge", bridge, {ports = names, config = {mac_table = {timeout = timeout_s}}})
   for _, name in ipairs(names) do
      config.link(network, name..".tx -> bridge."..name)
      config.link(network, "bridge."..name.." -> "..name..".rx")
   end
else
   for index = 1, #names, 2 do
      config.link(network, names[index]..".tx -> "..names[index + 1]..".rx")
      config.link(network, names[index + 1]..".tx -> "..names[index]..".rx")
   end
end

engine.configure(network)
engine.busywait = true
-- Snabb's own report of an error is a screen of stack frames, below which its reason is lost.
local _, reason = pcall(engine.main, {no_report = true})
io.stderr:write(tostring(reason), "\n")
main.exit(1)
