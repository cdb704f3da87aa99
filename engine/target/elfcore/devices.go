// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// This file merges what notes of a vendor hold with the process: the threads that
// ran on processors beside the CPU, and their code. What the notes say, a plugin
// knows (sdk.OpenTargetRequest).

// A NoteReader reads the notes of an owner.
type NoteReader interface {
	Description() *sdk.Description
	OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error)
}

// maxDeviceThreads bounds the threads of devices.
const maxDeviceThreads = 1 << 20

// openDevices hands the notes that plugins own to them, and merges what they answer.
func (c *Core) openDevices(options Options) {
	owned := map[string][]sdk.Note{}
	var owners []string
	for _, nt := range c.process.unclaimed {
		if owned[nt.Owner] == nil {
			owners = append(owners, nt.Owner)
		}
		owned[nt.Owner] = append(owned[nt.Owner], nt)
	}
	isRead := map[string]bool{}
	for _, owner := range owners {
		var reader NoteReader
		err := target.ErrNoArchitecture
		if options.ForNote != nil {
			reader, err = options.ForNote(owner)
		}
		switch {
		case err == nil:
			isRead[owner] = true
			c.openNotes(owner, reader, owned[owner])
		case !errors.Is(err, target.ErrNoArchitecture):
			c.hasUnread = true
			c.problem("notes of %s are not read: %v", clip(owner), err)
		}
	}
	c.sayGraphics(isRead)
}

// openNotes asks a plugin about its notes.
func (c *Core) openNotes(owner string, reader NoteReader, notes []sdk.Note) {
	a, err := reader.OpenTarget(context.Background(), &coreEngine{Core: c}, &sdk.OpenTargetRequest{Notes: notes})
	if err != nil {
		c.hasUnread = true
		c.problem("the notes of %s are not read: %v", clip(owner), err)
		return
	}
	for _, p := range a.Problems {
		c.problem("notes of %s: %s", clip(owner), p)
	}
	c.hasUnread = c.hasUnread || len(a.Threads) == 0 && len(a.Problems) > 0
	if a.Kind == "" && len(a.Threads) == 0 && len(a.Objects) == 0 {
		return
	}
	c.kind = target.Kind(a.Kind)
	d := devices{Core: c, description: reader.Description(), answer: a}
	if c.ofDevices == nil {
		c.ofDevices = map[string]*sdk.Description{}
	}
	c.ofDevices[d.description.Name] = d.description
	d.addObjects()
	d.addThreads()
}

// coreEngine is the core as a plugin sees it that reads its notes.
type coreEngine struct {
	*Core
	read atomic.Int64 // bytes since pages were given back
}

const (
	// releaseAfter is after how many bytes that a plugin has read their pages are given
	// back: the state of waves may be gigabytes.
	releaseAfter = 32 << 20
	// aroundRead is what the kernel maps of a file around a byte that is read.
	aroundRead = 64 << 10
)

func (e *coreEngine) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	n, err := e.Core.ReadMemory(m.Space, m.Address, buf)
	if e.read.Add(int64(max(n, aroundRead))) > releaseAfter {
		e.read.Store(0)
		e.ReleasePages()
	}
	return n, err
}

func (*coreEngine) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errors.New("the threads of the core are not known yet")
}

func (*coreEngine) ReadSection(context.Context, uint64, string) ([]byte, error) {
	return nil, errors.New("the code objects of the core are not known yet")
}

// devices are what a plugin found in a core.
type devices struct {
	*Core
	description *sdk.Description
	answer      *sdk.OpenTargetAnswer
}

// addThreads adds the threads behind those of the process.
func (d *devices) addThreads() {
	list := d.answer.Threads
	if len(list) > maxDeviceThreads {
		d.problem("%d threads of %s, of which the first %d are shown", len(list), d.description.Name, maxDeviceThreads)
		list = list[:maxDeviceThreads]
	}
	taken := make(map[string]bool, len(d.process.threads))
	for _, th := range d.process.threads {
		taken[th.ID] = true
	}
	launches := d.launches()
	threads, waves := make([]target.Thread, len(list)), make([]target.Wave, len(list))
	d.process.threads = slices.Grow(d.process.threads, len(list))
	for i := range list {
		of, th := &list[i], &threads[i]
		*th = target.Thread{
			Handle: uint64(len(d.process.threads)), ID: of.ID, Name: of.Name, Arch: d.description.Name, Processor: of.Processor,
			Crashed: of.HasCrashed, IsRunning: of.IsRunning, Stop: stopOf(&of.Stop), Registers: of.Registers, Saved: of.Saved,
			Problem: of.Problem, Lanes: of.Lanes, Spaces: of.Spaces, Memory: of.Memory, LaunchedBy: launches[of.Wave.Dispatch],
		}
		if taken[th.ID] {
			th.ID = d.description.Name + "-" + th.ID
		}
		if of.Wave != (sdk.Wave{}) {
			waves[i] = of.Wave
			th.Wave = &waves[i]
		}
		if of.LauncherThread != "" {
			th.LaunchedBy = &target.Launch{Thread: of.LauncherThread, Kind: of.LaunchKind, Evidence: of.LaunchEvidence}
		}
		d.process.threads = append(d.process.threads, th)
	}
	d.info.Agents = append(d.info.Agents, d.answer.Agents...)
	d.info.Queues = append(d.info.Queues, d.answer.Queues...)
	d.info.Dispatches = append(d.info.Dispatches, d.answer.Dispatches...)
}

// launches are what is known of who launched the threads of each dispatch: a
// thread of the process, and perhaps the one that waits for it.
func (d *devices) launches() map[string]*target.Launch {
	launches := make(map[string]*target.Launch, len(d.answer.Dispatches))
	for i := range d.answer.Dispatches {
		of := &d.answer.Dispatches[i]
		launches[of.ID] = &target.Launch{
			Kind: "dispatch", Evidence: target.LaunchQueue, Signal: of.Signal, WaitFunctions: d.answer.WaitFunctions,
		}
	}
	return launches
}

func stopOf(s *sdk.ThreadStop) *target.Stop {
	reason, ok := sdk.FindStopReason(s.Reason)
	if !ok {
		return nil
	}
	stop := &target.Stop{Reason: s.Reason, Details: s.Details, PCExact: s.IsPCExact, HasPCExact: s.HasPCExact}
	// What is beside another reason than it is of is told by the details.
	if reason.HasAddress {
		stop.Address, stop.HasAddress = s.Address, s.HasAddress
	}
	if reason.HasTrapID {
		stop.TrapID, stop.HasTrapID = s.TrapID, s.HasTrapID
	}
	return stop
}

// addObjects adds the code objects that the devices had loaded.
func (d *devices) addObjects() {
	for i := range d.answer.Objects {
		if len(d.modules) >= maxModules {
			d.problem("more than %d code objects are loaded: %d of devices are left out, the first is %s",
				maxModules, len(d.answer.Objects)-i, clip(d.answer.Objects[i].URI))
			return
		}
		d.addObject(&d.answer.Objects[i])
	}
	d.memory.settle()
	d.sortModules()
}

// addObject adds a code object. Where neither its file nor its image is there, it
// is read as it was loaded.
func (d *devices) addObject(of *sdk.TargetObject) {
	mod := &target.Module{Path: of.URI, Arch: d.description.Name}
	im, hasHeaders := d.loadedImage(of.Bias)
	var loaded *image
	if hasHeaders {
		loaded = &im
	}
	o, file, err := d.openImage(of, loaded)
	switch {
	case err == nil:
		mod.Object, mod.File, mod.BuildID = o, file, o.BuildID()
		if im.programs = o.Programs(); len(im.buildID) > 0 {
			mod.BuildID = im.buildID
		}
		im.bias = of.Bias
		d.memory.addFiles(mod, fileSegments(o, d.header.numbers, &image{bias: of.Bias}, "", nil))
	case hasHeaders:
		mod.Problem, mod.BuildID = err.Error(), im.buildID
		d.takeLoaded(mod, &im)
	default:
		mod.Problem = err.Error()
	}
	mod.Segments = (&modules{Core: d.Core}).segments(&im)
	d.modules = append(d.modules, mod)
}

// loadedImage is the code object as it was loaded, by the ELF header in memory.
func (d *devices) loadedImage(bias uint64) (im image, ok bool) {
	for i := range d.description.Recognises {
		machine := d.description.Recognises[i].ELFMachine
		if machine == 0 {
			continue
		}
		if im, ok = d.imageOf(bias, machine); ok && im.bias == bias {
			return im, true
		}
	}
	return im, false
}

// otherThan says why a file is not what was loaded; "" where it may be.
func otherThan(loaded *image, o *object.Object) string {
	if id := o.BuildID(); len(id) > 0 && len(loaded.buildID) > 0 && !bytes.Equal(id, loaded.buildID) {
		return fmt.Sprintf("its build ID is %x, in memory %x is in that place", id, loaded.buildID)
	}
	return sameImage(loaded, o)
}

// openImage opens the file image of a code object, a part of a file or of memory,
// where it is what was loaded; nil: that is not known.
func (d *devices) openImage(of *sdk.TargetObject, loaded *image) (o *object.Object, file string, err error) {
	if of.Path == "" {
		if of.Size > d.imageBudget {
			return nil, "", fmt.Errorf("its image of %#x bytes at address %#x: the images in memory would have more bytes than the core", of.Size, of.MemoryAddress)
		}
		d.imageBudget -= of.Size
		data := d.memory.readDumped(of.MemoryAddress, min(of.Size, maxImage))
		if uint64(len(data)) < of.Size {
			return nil, "", fmt.Errorf("its image at address %#x is not in the core: %#x of %#x bytes are", of.MemoryAddress, len(data), of.Size)
		}
		o, err = d.openPart("memory", of, data, loaded)
		return o, "", err
	}
	for m, wrong := range d.finder.Mapped(of.Path) {
		if wrong == nil {
			d.beside = append(d.beside, m)
			o, wrong = d.openPart(m.Path(), of, m.Data(), loaded)
		}
		if wrong == nil {
			return o, m.Path(), nil
		}
		err = cmp.Or(err, wrong)
	}
	return nil, "", err
}

// openPart opens the part of a file that is a code object; name is that of the file.
func (d *devices) openPart(name string, of *sdk.TargetObject, data []byte, loaded *image) (*object.Object, error) {
	var offset, size uint64
	if of.Path != "" { // else data are the image alone
		offset, size = of.Offset, of.Size
	}
	o, err := d.finder.Store.Part(name, of.URI, data, offset, size)
	if err != nil {
		return nil, err
	}
	d.objects = append(d.objects, o)
	if loaded == nil {
		return o, nil
	}
	if reason := otherThan(loaded, o); reason != "" {
		return nil, fmt.Errorf("%s was not used: %s", name, reason)
	}
	return o, nil
}

// clip keeps texts of a core short in messages.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
