// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
)

// ErrNoArchitecture is wrapped by the errors of lookups that found no
// architecture.
var ErrNoArchitecture = target.ErrNoArchitecture

// ErrAmbiguous is the error where more than one plugin claims the same thing as specifically
// as any other. The engine does not choose: the user has to say which is used.
type ErrAmbiguous struct {
	What  string   // "ELF machine 62, OS ABI 0"
	Names []string // of the plugins, each with where it comes from

	isSameName bool // of all plugins: their names do not tell them apart
}

func (e *ErrAmbiguous) Error() string {
	advice := `say in the configuration file which are not used: disabled = ["NAME"] under [plugins], or NAME = "OTHER" under [plugins.replace] for one that OTHER takes the place of`
	if e.isSameName {
		advice = "they have the same name: remove or rename all but one, or, where one is bundled, say in the configuration file that the other takes its place: NAME = \"NAME\" under [plugins.replace]"
	}
	return fmt.Sprintf("%s is claimed by %d plugins, none of which is more specific than the others: %s; %s",
		e.What, len(e.Names), strings.Join(e.Names, " and "), advice)
}

// Failure is the reason that a call of a plugin has no answer: it could not be started,
// died, hung, returned an error, or gave an invalid answer. Err is the cause where there
// is one; an error that the plugin itself answered keeps its identity under errors.Is
// (sdk.ErrNotImplemented).
type Failure struct {
	Plugin string // its name
	Call   string // "FrameRules"; "start" when it could not be started
	Reason string
	Err    error

	isAnswered bool // see IsAnswered
}

// IsAnswered reports whether a call failed by an answer: an error, or one that was refused. The
// plugin did not die and was not late, and a part of the request may have an answer.
func IsAnswered(err error) bool {
	var failure *Failure
	return errors.As(err, &failure) && failure.isAnswered && !errors.Is(err, context.DeadlineExceeded)
}

func (f *Failure) Error() string {
	if f.Call == startCall {
		return fmt.Sprintf("plugin %s: %s", f.Plugin, f.Reason) // which says that it is of the start
	}
	return fmt.Sprintf("plugin %s: %s: %s", f.Plugin, f.Call, f.Reason)
}

// startCall is the Call of a Failure of a start.
const startCall = "start"

func (f *Failure) Unwrap() error { return f.Err }

// nonsense is an error about an invalid answer.
type nonsense struct{ error }

func (n *nonsense) Unwrap() error { return n.error }

func nonsenseFailure(plugin, call string, n *nonsense) *Failure {
	return &Failure{Plugin: plugin, Call: call, Reason: "answered nonsense: " + clip(printable(n.Error())), Err: n.error, isAnswered: true}
}
