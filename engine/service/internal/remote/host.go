// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// Ask asks the machine of the target. For a FileQuestion, the file is at path as long as
// the target is walked.
type Ask func(q *pb.Question) (a *pb.Answer, path string, err error)

// Host opens targets of other machines, one after the other. It is the object.Owner of
// their code objects, which outlive the target that they came with: the next target may
// have them, too.
type Host struct {
	mu      sync.Mutex
	ask     Ask
	err     error // the first question that was not answered
	finder  object.Finder
	modules map[*object.Object]ownObject
}

// ownObject is the code object of a module of the target that is being walked.
type ownObject struct {
	module uint32
	*Object
}

var errNoTarget = errors.New("no target of another machine is being walked")

// begin sets the function that asks from now on. finder finds files on this machine.
func (h *Host) begin(ask Ask, finder object.Finder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ask, h.err, h.modules, h.finder = ask, nil, map[*object.Object]ownObject{}, finder
	h.finder.Owner = nil
}

// end ends the asking.
func (h *Host) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ask, h.modules = nil, nil
}

// Err returns why a question was not answered; nil: all were. With such an error, a report
// is wrong.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// question asks a question, and records an error.
func (h *Host) question(q *pb.Question) (a *pb.Answer, path string, err error) {
	h.mu.Lock()
	ask := h.ask
	h.mu.Unlock()
	err = errNoTarget
	if ask != nil {
		a, path, err = ask(q)
	}
	if err == nil && a.GetAbout() == nil {
		err = errors.New("an answer without content")
	}
	if text, ok := a.GetAbout().(*pb.Answer_Failure); ok && err == nil {
		err = errors.New(text.Failure)
	}
	if err != nil {
		err = fmt.Errorf("the machine of the target: %w", err)
		h.mu.Lock()
		h.err = errors.Join(h.err, err)
		if ask == nil {
			h.err = nil
		}
		h.mu.Unlock()
		return nil, "", err
	}
	return a, path, nil
}

// file asks for a file, which is at path.
func (h *Host) file(q *pb.FileQuestion) (path, name string, err error) {
	path, a, err := h.fileParts(q)
	if err == nil && len(a.GetThere()) > 0 {
		err = fmt.Errorf("the machine of the target: a part of a file of module %d came, expected all of it", q.Module)
	}
	return path, string(a.GetName()), err
}

// fileParts asks for a file, or for parts of it, which are in their places in the file at path.
func (h *Host) fileParts(q *pb.FileQuestion) (path string, about *pb.FileAnswer, err error) {
	a, path, err := h.question(&pb.Question{About: &pb.Question_File{File: q}})
	if err != nil {
		return "", nil, err
	}
	if path == "" {
		return "", nil, fmt.Errorf("the machine of the target: no file of module %d came", q.Module)
	}
	return path, a.GetFile(), nil
}

// contents asks for a file, and reads it.
func (h *Host) contents(q *pb.FileQuestion) (b []byte, name string, err error) {
	path, name, err := h.file(q)
	if err != nil {
		return nil, "", err
	}
	b, err = object.ReadFile(path)
	return b, name, err
}

// own adds the code object of a module.
func (h *Host) own(o *object.Object, module uint32, as *Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.modules[o]; !ok && h.modules != nil { // a file may be loaded several times
		h.modules[o] = ownObject{module, as}
	}
}

// find returns the module of an object.
func (h *Host) find(o *object.Object) (own ownObject, finder object.Finder, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own, ok = h.modules[o]
	return own, h.finder, ok
}

// Key implements object.Owner.
func (h *Host) Key(o *object.Object) string {
	own, _, ok := h.find(o)
	if !ok {
		return "here" // it was found on this machine
	}
	return own.key()
}

// GlanceDebug implements object.Owner.
func (h *Host) GlanceDebug(o *object.Object) (has bool, tried []object.Attempt) {
	own, finder, ok := h.find(o)
	if !ok {
		return finder.GlanceDebug(o)
	}
	return own.HasDebug, own.TriedDebug
}

// FindDebug implements object.Owner. The machine of the target is asked first, since its
// files certainly are the target's; a file that it lacks may be here.
func (h *Host) FindDebug(o *object.Object) object.Found {
	own, finder, ok := h.find(o)
	if !ok {
		return finder.FindDebug(o)
	}
	found, err := h.findDebug(o, own.module, &finder)
	if err != nil {
		found.Problem = fmt.Sprintf("%s: its separate debug file: %v", o.Name(), err)
		return found
	}
	if found.Object == nil && !o.HasDebugInfo() {
		if here := finder.FindDebug(o); here.Object != nil {
			return here
		}
	}
	return found
}

func (h *Host) findDebug(o *object.Object, module uint32, finder *object.Finder) (found object.Found, err error) {
	a, _, err := h.question(&pb.Question{About: &pb.Question_Debug{Debug: &pb.DebugQuestion{Module: module}}})
	if err != nil {
		return found, err
	}
	answer := a.GetDebug()
	found = object.Found{Problem: string(answer.GetProblem()), Tried: attemptsOf(answer.GetTried())}
	if !answer.GetFound() {
		return found, nil
	}
	path, _, err := h.file(&pb.FileQuestion{Kind: pb.FileQuestion_DEBUG, Module: module, BuildId: answer.BuildId, Size: answer.Size})
	if err != nil {
		return found, err
	}
	file, err := finder.Store.OpenAs(path, string(answer.Path), nil)
	if err != nil {
		return found, err
	}
	if why := object.CheckDebug(o, file); why != "" {
		_ = file.Close()
		return found, errors.New(why)
	}
	found.Object, found.Path, found.Checked = file, string(answer.Path), answer.Checked
	return found, nil
}

func attemptsOf(list []*pb.TriedFile) (tried []object.Attempt) {
	for _, t := range list {
		tried = append(tried, object.Attempt{Path: string(t.GetPath()), Reason: string(t.GetReason()), Kind: object.AttemptKind(t.GetKind())})
	}
	return tried
}
