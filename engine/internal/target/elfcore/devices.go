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
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// The notes or the sections of a vendor describe the threads that ran on processors beside the CPU, and their
// code. A plugin reads them (sdk.OpenTargetRequest), and they are merged with the process.

// NoteReader reads the notes of an owner, or the sections of a core of a machine.
type NoteReader interface {
	Description() *sdk.Description
	OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error)
}

// maxDeviceThreads bounds the threads of devices.
const maxDeviceThreads = 1 << 20

// openDevices passes notes to the plugins that own them, and merges the answers.
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
			c.openTarget("notes of "+clip(owner), reader, &sdk.OpenTargetRequest{Notes: owned[owner]})
		case !errors.Is(err, target.ErrNoArchitecture):
			c.hasUnread = true
			c.problem("notes of %s are not read: %v", clip(owner), err)
		}
	}
	c.openSections(options)
	c.reportGraphics(isRead)
}

// coreEngine is the view of the core for a plugin that reads its notes.
type coreEngine struct {
	*Core
	read atomic.Int64 // bytes since pages were released
}

const (
	// releaseAfter is the number of bytes that a plugin reads before their pages are
	// released: the state of waves may be gigabytes.
	releaseAfter = 32 << 20
	// aroundRead is the size of the part of a file that the kernel maps around a byte that
	// is read.
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

// devices is the state of devices that a plugin found in a core.
type devices struct {
	*Core
	description *sdk.Description
	answer      *sdk.OpenTargetAnswer
}

// addThreads appends the threads of devices to the threads of the process.
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
	threads, waves := make([]trace.Thread, len(list)), make([]sdk.Wave, len(list))
	d.process.threads = slices.Grow(d.process.threads, len(list))
	for i := range list {
		info, th := &list[i], &threads[i]
		*th = trace.Thread{
			Handle: uint64(len(d.process.threads)), ID: info.ID, Name: info.Name, Arch: d.description.Name, Processor: info.Processor,
			Crashed: info.HasCrashed, IsRunning: info.IsRunning, Stop: stopOf(&info.Stop), Registers: info.Registers, Saved: info.Saved,
			Problem: info.Problem, Lanes: info.Lanes, Spaces: info.Spaces, Memory: info.Memory, LaunchedBy: launches[info.Wave.Dispatch],
			Callers: info.Callers, LaneStates: info.LaneStates, Lead: info.Lead, State: info.State,
		}
		if taken[th.ID] {
			th.ID = d.description.Name + "-" + th.ID
		}
		if info.Wave != (sdk.Wave{}) {
			waves[i] = info.Wave
			th.Wave = &waves[i]
		}
		if info.LauncherThread != "" {
			th.LaunchedBy = &trace.Launch{Thread: info.LauncherThread, Kind: info.LaunchKind, Evidence: info.LaunchEvidence}
			if info.LaunchEvidence == trace.LaunchQueue { // the stack of that thread tells
				th.LaunchedBy.WaitFunctions, th.LaunchedBy.LaunchFunctions = d.answer.WaitFunctions, d.answer.LaunchFunctions
			}
		}
		d.process.threads = append(d.process.threads, th)
	}
	d.info.Agents = append(d.info.Agents, d.answer.Agents...)
	d.info.Queues = append(d.info.Queues, d.answer.Queues...)
	d.info.Dispatches = append(d.info.Dispatches, d.answer.Dispatches...)
	d.info.Host = cmp.Or(d.info.Host, d.answer.HostProcess)
}

// launches returns the launch of the threads of each dispatch by its ID: by a thread of the
// process, perhaps the thread that waits for it.
func (d *devices) launches() map[string]*trace.Launch {
	launches := make(map[string]*trace.Launch, len(d.answer.Dispatches))
	for i := range d.answer.Dispatches {
		dispatch := &d.answer.Dispatches[i]
		launches[dispatch.ID] = &trace.Launch{
			Kind: "dispatch", Evidence: trace.LaunchQueue, Signal: dispatch.Signal, WaitFunctions: d.answer.WaitFunctions,
			LaunchFunctions: d.answer.LaunchFunctions,
		}
	}
	return launches
}

func stopOf(s *sdk.ThreadStop) *trace.Stop {
	reason, ok := sdk.FindStopReason(s.Reason)
	if !ok {
		return nil
	}
	stop := &trace.Stop{Reason: s.Reason, Details: s.Details, PCExact: s.IsPCExact, HasPCExact: s.HasPCExact}
	// For a reason that has no address or trap ID, the details alone have it.
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
		if o := &d.answer.Objects[i]; o.Path == "" && o.Into == sdk.FileSpace {
			d.addFileObject(o)
			continue
		}
		d.addObject(&d.answer.Objects[i])
	}
	d.memory.settle()
	target.SortModules(d.modules)
}

// addObject adds a code object. If neither its file nor its file image is available, its loaded
// image is read.
func (d *devices) addObject(described *sdk.TargetObject) {
	mod := &target.Module{Module: trace.Module{Path: described.URI, Arch: d.description.Name}}
	im, hasHeaders := d.loadedImage(described.Bias)
	var loaded *image
	if hasHeaders {
		loaded = &im
	}
	o, file, err := d.openImage(described, loaded)
	switch {
	case err == nil:
		mod.Object, mod.File, mod.BuildID = o, file, o.BuildID()
		if im.programs = o.Programs(); len(im.buildID) > 0 {
			mod.BuildID = im.buildID
		}
		im.bias = described.Bias
		d.memory.addFiles(mod, fileSegments(o, d.header.numbers, &image{bias: described.Bias}, "", nil))
	case hasHeaders:
		mod.Problem, mod.BuildID = err.Error(), im.buildID
		d.takeLoaded(mod, &im)
	default:
		mod.Problem = err.Error()
	}
	mod.Segments = (&modules{Core: d.Core}).segments(&im)
	d.modules = append(d.modules, mod)
}

// loadedImage returns the code object as it was loaded, by the ELF header in memory.
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

// mismatch returns why a file is not the code object that was loaded; "" if it may be.
func mismatch(loaded *image, o *object.Object) string {
	if id := o.BuildID(); len(id) > 0 && len(loaded.buildID) > 0 && !bytes.Equal(id, loaded.buildID) {
		return fmt.Sprintf("its build ID is %x, in memory %x is in that place", id, loaded.buildID)
	}
	return sameImage(loaded, o)
}

// openImage opens the file image of a code object, a part of a file or of memory. loaded has the
// headers of the code object in memory, which must match; nil if they are not known.
func (d *devices) openImage(described *sdk.TargetObject, loaded *image) (o *object.Object, file string, err error) {
	if described.Path == "" {
		if described.Size > d.imageBudget {
			return nil, "", fmt.Errorf("its image of %#x bytes at address %#x: the images in memory would have more bytes than the core", described.Size, described.MemoryAddress)
		}
		d.imageBudget -= described.Size
		data := d.memory.readDumped(described.MemoryAddress, min(described.Size, maxImage))
		if uint64(len(data)) < described.Size {
			return nil, "", fmt.Errorf("its image at address %#x is not in the core: %#x of %#x bytes are", described.MemoryAddress, len(data), described.Size)
		}
		o, err = d.openPart("memory", described, data, loaded)
		return o, "", err
	}
	for m, wrong := range d.finder.Mapped(described.Path) {
		if wrong == nil {
			d.beside = append(d.beside, m)
			o, wrong = d.openPart(m.Path(), described, m.Data(), loaded)
		}
		if wrong == nil {
			return o, m.Path(), nil
		}
		err = cmp.Or(err, wrong)
	}
	return nil, "", err
}

// openPart opens the part of a file that is a code object; name is the file's name.
func (d *devices) openPart(name string, described *sdk.TargetObject, data []byte, loaded *image) (*object.Object, error) {
	var offset, size uint64
	if described.Path != "" { // else data is the image alone
		offset, size = described.Offset, described.Size
	}
	o, err := d.finder.Store.Part(name, described.URI, data, offset, size)
	if err != nil {
		return nil, err
	}
	d.objects = append(d.objects, o)
	if loaded == nil {
		return o, nil
	}
	if reason := mismatch(loaded, o); reason != "" {
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
