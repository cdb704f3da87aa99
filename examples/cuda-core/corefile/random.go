// SPDX-License-Identifier: Apache-2.0

package corefile

import "math/rand/v2"

// Shape is the size of a random core.
type Shape struct {
	Devices, SMs, Blocks, Warps int // at most, of each
	Registers, Local            int // words of registers, bytes of local memory, at most
}

// Random returns a core whose every member has a value. No two lanes have the same registers.
func Random(seed uint64, driver int, shape Shape) *Core {
	g := generator{rand.New(rand.NewPCG(seed, 1)), shape} //nolint:gosec // no secrets
	c := &Core{Driver: driver, Layout: Layout(g.IntN(2)), Seed: seed % 3}
	c.Meta = Meta{"a generator", [2]uint32{uint32(driver), 1}, [2]uint32{13, 2}, 0, g.Uint32()} //nolint:gosec // small
	for i := range 1 + g.IntN(4) {
		c.Global = append(c.Global, Memory{0x7f00_0000_0000 + uint64(i)<<20, g.bytes(1 + g.IntN(300)), g.IntN(3) == 0}) //nolint:gosec // small
	}
	for i := range 1 + g.IntN(shape.Devices) {
		c.Devices = append(c.Devices, g.device(uint32(i))) //nolint:gosec // small
	}
	return c
}

type generator struct {
	*rand.Rand
	shape Shape
}

func (g generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g generator) words(n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = g.Uint32()
	}
	return w
}

func (g generator) flags(n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = g.Uint32() & 1
	}
	return w
}

// maybe returns a value of up to 32 bits, or 0.
func (g generator) maybe() uint32 {
	if g.IntN(3) == 0 {
		return g.Uint32()
	}
	return 0
}

func (g generator) device(id uint32) Device {
	d := Device{
		Name: "a GPU", Type: "GH100", SM: "sm_90", ID: id, PCIBus: g.Uint32(), PCIDevice: g.Uint32(), SMCount: 132, WarpsPerSM: 64, Lanes: 32,
		Registers: 255, Predicates: 7, Major: 9, InstructionSize: 16, UniformRegisters: 63, UniformPredicates: 7, Barriers: 16,
	}
	for i := range 1 + g.IntN(2) {
		n := uint64(id)*4 + uint64(i)
		d.Contexts = append(d.Contexts, Context{
			ID: 0x100 + n, Shared: 0x7e00_0000_0000 + n<<32, Local: 0x7e00_0000_0000 + n<<32 + 1<<24, Device: id, HostThread: 1000 + uint32(n), //nolint:gosec // small
			Modules: []Module{{Handle: 0x2000 + n, Relocated: g.bytes(100), Original: g.bytes(80)}},
		})
	}
	for i := range 1 + g.IntN(3) {
		d.Grids = append(d.Grids, g.grid(uint64(i)+1, &d.Contexts[i%len(d.Contexts)])) //nolint:gosec // small
	}
	for i := range 1 + g.IntN(g.shape.SMs) {
		m := SM{ID: uint32(i) * 2, Exception: g.maybe() % 37, ErrorPC: g.Uint64(), HasErrorPC: g.IntN(2) == 0, Text: "more is not known"} //nolint:gosec // small
		for range g.IntN(g.shape.Blocks + 1) {
			m.Blocks = append(m.Blocks, g.block(&d.Grids[g.IntN(len(d.Grids))], len(m.Blocks)*g.shape.Warps))
		}
		d.SMs = append(d.SMs, m)
	}
	return d
}

func (g generator) grid(id uint64, c *Context) Grid {
	return Grid{
		ID: id, Context: c.ID, Function: g.Uint64(), Entry: 0x7d00_0000_0000 + id<<16, Module: c.Modules[0].Handle, ParametersAt: 0x210, Kind: 2,
		Status: 2, Registers: 40, Blocks: [3]uint32{8, 3, 2}, Block: [3]uint32{64, 2, 1}, IsBlocking: g.IntN(2) == 0, HostThread: g.maybe(),
		Cluster: [3]uint32{2, 1, 1}, PreferredCluster: [3]uint32{4, 1, 1}, Parameters: g.bytes(1 + g.IntN(100)),
		Banks: []Bank{{0x7f00_0000_0000, 0x10, 0}, {0x7f00_0000_0000 + 0x20, 0x30, 3}},
	}
}

func (g generator) block(launch *Grid, firstWarp int) Block {
	b := Block{
		Grid: launch.ID, Index: [3]uint32{g.Uint32N(8), g.Uint32N(3), g.Uint32N(2)}, Cluster: [3]uint32{g.Uint32N(4), 1, 1},
		ClusterDim: [3]uint32{2, 1, 1}, Shared: g.bytes(g.IntN(200)),
	}
	for i := range 1 + g.IntN(g.shape.Warps) {
		b.Warps = append(b.Warps, g.warp(uint32(firstWarp+i), i)) //nolint:gosec // small
	}
	return b
}

func (g generator) warp(id uint32, number int) Warp {
	w := Warp{
		ID: id, ErrorPC: g.Uint64(), HasErrorPC: g.IntN(3) == 0, Valid: g.Uint32() | g.Uint32(), IsBroken: g.IntN(6) == 0, SharedSize: g.Uint32(),
		InSyscall: g.Uint32(), CBUActive: g.Uint32(), CBUExited: g.Uint32(), CBUCollective: g.Uint32(), BarrierScope: g.maybe() % 6,
		BarrierText: "mbarrier at 0x40", Uniform: g.words(g.IntN(64)), UniformPredicates: g.flags(7), Barriers: g.words(16),
	}
	w.Active = w.Valid & g.Uint32()
	w.Registers = uint32(1 + g.IntN(g.shape.Registers)) //nolint:gosec // small
	places := 1 + g.IntN(4)
	for i := range uint32(32) {
		if g.IntN(4) > 0 || w.Valid>>i&1 != 0 {
			w.Lanes = append(w.Lanes, g.lane(i, number, g.IntN(places), w.Registers))
		}
	}
	return w
}

func (g generator) lane(number uint32, warp, place int, registers uint32) Lane {
	l := Lane{
		PC: 0x7d00_0001_0000 + uint64(place)*16, Offset: uint64(place) * 16, Number: number, //nolint:gosec // small
		Thread: [3]uint32{number + 32*(uint32(warp)&1), uint32(warp) / 2, 0}, Exception: g.maybe() % 50 / 4, CC: g.maybe(), //nolint:gosec // small
		State: uint32(place) * 3, RPC: [2]uint32{g.Uint32(), g.Uint32()}, LocalStart: 0xfff000, Local: g.bytes(g.IntN(g.shape.Local + 1)), //nolint:gosec // small
		Registers: g.words(int(registers)), Predicates: g.flags(7),
	}
	for i := range place % 3 {
		l.Frames = append(l.Frames, Frame{0x40, 0x7d00_0002_0000 + uint64(place*256+i*16), uint32(i)}) //nolint:gosec // small
	}
	l.Depth = uint32(len(l.Frames)) //nolint:gosec // small
	g.Shuffle(len(l.Frames), func(i, j int) { l.Frames[i], l.Frames[j] = l.Frames[j], l.Frames[i] })
	return l
}
