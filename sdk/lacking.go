// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"sync"
)

// lacking has the calls that a plugin does not serve: it is not asked again for those whose
// answer is then Base's. Translate and Disassemble are not among them, because there the plugin's
// own words are shown, and may be about one request.
type lacking struct {
	errors sync.Map // *RemoteError by the name of a call
}

var baseAnswers = map[string]bool{
	"OpenTarget": true, "OpenObject": true, "FrameRules": true, "BindThreads": true, "ClassifyReturn": true,
	"OpenRuntime": true, "CodeRules": true, "ManagedFrames": true, "ManagedThreads": true,
}

// find returns the error of a call that is not served; nil where it may be.
func (l *lacking) find(call string) error {
	if err, ok := l.errors.Load(call); ok {
		return err.(*RemoteError)
	}
	return nil
}

// learn returns err, the error of a call, and keeps it where it says that the call is not served.
// A method that package sdk serves is there, and speaks of one request.
func (l *lacking) learn(call string, err error) error {
	var e *RemoteError
	if errors.As(err, &e) && errors.Is(e, ErrNotImplemented) && !e.isDetailed && baseAnswers[call] {
		l.errors.Store(call, e)
	}
	return err
}
