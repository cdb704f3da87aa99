// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/sdk"
)

// attachExample is a value that ParseReattach accepts, for its errors.
const attachExample = `{"NAME":{"Protocol":"grpc","ProtocolVersion":2,"Pid":123,"Addr":{"Network":"unix","String":"/path/of/socket"}}}`

// ParseReattach reads a value of sdk.Reattach, for Options.Attached. An error shows a
// valid value. The processes need not exist.
func ParseReattach(value string) (map[string]sdk.Reattachment, error) {
	var all map[string]sdk.Reattachment
	if err := json.Unmarshal([]byte(value), &all); err != nil {
		return nil, fmt.Errorf("%s: %w, expected %s", sdk.Reattach, err, attachExample)
	}
	for name, r := range all {
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("%s: %q: %s", sdk.Reattach, clip(printable(name)), fmt.Sprintf(format, args...))
		}
		switch {
		case !isValidName(name):
			return nil, wrong("expected NAME of unwindd-arch-NAME")
		case r.Protocol != "grpc":
			return nil, wrong("Protocol is %q, expected \"grpc\"", clip(r.Protocol))
		case r.ProtocolVersion != sdk.ProtocolVersion:
			return nil, wrong("ProtocolVersion is %d, expected %d", r.ProtocolVersion, sdk.ProtocolVersion)
		case r.Kind != "" && r.Kind != "runtime":
			return nil, wrong("Kind is %q, expected \"runtime\" or none", clip(printable(r.Kind)))
		case r.Pid <= 0:
			return nil, wrong("Pid is %d, expected that of a process", r.Pid)
		case r.Addr.Network != "unix":
			return nil, wrong("Addr.Network is %q, expected \"unix\"", clip(r.Addr.Network))
		case !strings.HasPrefix(r.Addr.String, "/"):
			return nil, wrong("Addr.String is %q, expected the path of a socket, from / on", clip(r.Addr.String))
		}
	}
	return all, nil
}

// attached is the transport of a plugin whose process somebody else started, as in a
// debugger. It is not confined, has no deadline, and is neither ended nor started again.
// Its answers are validated like all others.
type attached struct {
	name  string
	where sdk.Reattachment

	mu         sync.Mutex
	attachment *attachment // nil: no call was made yet
	err        error       // why there is no attachment
}

// connect connects to the process, once.
func (t *attached) connect() (*attachment, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attachment == nil && t.err == nil {
		t.attachment, t.err = attach(t.where)
	}
	return t.attachment, t.err
}

// origin names the process.
func (t *attached) origin() string { return fmt.Sprintf("process %d", t.where.Pid) }

func (t *attached) do(ctx context.Context, call string, f func(context.Context, peer) error) error {
	a, err := t.connect()
	if err != nil {
		return &Failure{Plugin: t.name, Call: call, Reason: clip(printable(err.Error())), Err: err}
	}
	err = f(ctx, a.peer)
	if status.Code(err) == codes.Unavailable && ctx.Err() == nil {
		err = fmt.Errorf("process %d, which %s names, is gone: %w", t.where.Pid, sdk.Reattach, err)
	}
	return callFailure(ctx, t.name, call, err)
}

func (t *attached) prepare()           {}
func (t *attached) pid() int           { return t.where.Pid }
func (t *attached) starts() uint64     { return 0 }
func (t *attached) problems() []string { return nil }

func (t *attached) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attachment != nil {
		t.attachment.close()
	}
	t.attachment, t.err = nil, errClosed
}

// attachment is a connection to a process that somebody else started.
type attachment struct {
	peer   peer
	socket soleSocket
	conn   *grpc.ClientConn
	end    context.CancelFunc
}

// attach connects to a process, which must be one of this user.
func attach(where sdk.Reattachment) (*attachment, error) {
	path := where.Addr.String
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", sdk.Reattach, err)
	case info.Mode().Type() != os.ModeSocket:
		return nil, fmt.Errorf("%s: %s is no socket", sdk.Reattach, path)
	case !isOwnedByUs(info):
		return nil, fmt.Errorf("%s: %s belongs to another user", sdk.Reattach, path)
	}
	a := &attachment{}
	if err := a.socket.connect(path, where.Pid); err != nil {
		a.socket.close()
		return nil, fmt.Errorf("%s: %w", sdk.Reattach, err)
	}
	a.conn, err = grpc.NewClient("passthrough:plugin",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(a.socket.take),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithIdleTimeout(0),
		// A process at a breakpoint does not answer the connection either.
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: patience}),
	)
	if err != nil {
		a.socket.close()
		return nil, fmt.Errorf("%s: %w", sdk.Reattach, err)
	}
	var gone context.Context
	gone, a.end = context.WithCancel(context.Background())
	a.peer = peer{sdk.NewClient(gone, a.conn, 0), sdk.NewRuntimeClient(gone, a.conn, 0)}
	return a, nil
}

// patience is the time that a person in front of a debugger has.
const patience = 1000 * time.Hour

// close ends the connection, and not the process.
func (a *attachment) close() {
	a.end()
	a.conn.Close()
	a.socket.close()
}

// attachedPlug is a plugin of a kind whose process somebody else started. It is asked to
// describe itself, each time anew.
func attachedPlug(k *kind, name string, where sdk.Reattachment) *plug {
	t := &attached{name: name, where: where}
	p := &plug{kind: k, name: name, origin: t.origin(), transport: t}
	p.find = sync.OnceValues(func() (found, error) { return p.described(name) })
	return p
}

// errPinned is the reason that a process does not replace an executable that must have a
// certain hash.
var errPinned = errors.New("the configuration pins its executable, and whether a process is of that is not known")
