// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/profile"
	"github.com/unwindd/unwindd/engine/signature"
	"github.com/unwindd/unwindd/engine/source"
	"github.com/unwindd/unwindd/engine/target/process"
	"github.com/unwindd/unwindd/engine/walk"
)

// This file names what walks and profiles give, and what is asked with, so that
// who uses an Engine imports one package.

type (
	// A Stack is the walked stack of one thread; see walk.Stack.
	Stack = walk.Stack
	// A Frame is one activation of a function; see walk.Frame.
	Frame = walk.Frame
	// A Gap is frames of a stack that were left out; see walk.Gap.
	Gap = walk.Gap
	// FrameDetails are what is found out about a frame where Options ask for it.
	FrameDetails = walk.FrameDetails
	// SourceLines are lines of a source file; see source.Lines.
	SourceLines = source.Lines
	// A Variable is a variable of a frame with its value; see walk.Variable.
	Variable = walk.Variable
	// A GlobalVariable is a variable that is in no frame; see walk.GlobalVariable.
	GlobalVariable = walk.GlobalVariable
	// A RegisterValue is a general register of a frame.
	RegisterValue = walk.RegisterValue
	// Stopped is why a stack ends; see walk.Stopped.
	Stopped = walk.Stopped
	// StopReason says why a stack ends where it does.
	StopReason = walk.StopReason
	// A Signature is what crashes are grouped by; see signature.Signature.
	Signature = signature.Signature
	// A Launcher is the thread that launched another one; see walk.Launcher.
	Launcher = walk.Launcher
	// A LaneGroup is the lanes of a frame that are in one state at one place.
	LaneGroup = walk.LaneGroup
	// A LaneSet is a set of lanes.
	LaneSet = walk.LaneSet
	// LaneState says what a lane does in a frame.
	LaneState = walk.LaneState
	// A Sample is what a profiler keeps of one moment; see walk.Sample.
	Sample = walk.Sample
	// A Walker walks samples, one after the other; see walk.Walker.
	Walker = walk.Walker
	// A Synthetic is a target that the caller made up; see walk.Synthetic.
	Synthetic = walk.Synthetic
	// A Piece is bytes at an address of a Synthetic.
	Piece = walk.Piece
	// Surroundings are what an evaluation has beside its frame; see
	// walk.Surroundings.
	Surroundings = walk.Surroundings
	// InUnit says which unit an expression is of; see walk.InUnit.
	InUnit = walk.InUnit
	// An Activation is a frame that can still be asked about its registers; see
	// walk.Activation.
	Activation = walk.Activation
	// A Line is an instruction that Disassemble shows; see walk.Line.
	Line = walk.Line

	// FrameCode is the instructions around the PC of a frame; see walk.FrameCode.
	FrameCode = walk.FrameCode
	// A CodeReader finds the code of frames; see walk.CodeReader.
	CodeReader = walk.CodeReader

	// FoundBy says how a frame was found; see code.FoundBy.
	FoundBy = code.FoundBy
	// ModuleInfo is what was found out about a module; see code.Info.
	ModuleInfo = code.Info
	// DebugInfo says what came of looking for debug information.
	DebugInfo = code.DebugInfo

	// A Profile is the stacks of all samples of a recording; see profile.Profile.
	Profile = profile.Profile
	// RecordOptions say how a living process is recorded; see process.RecordOptions.
	RecordOptions = process.RecordOptions
	// A Recorded is what was recorded of a living process; see process.Recorded.
	Recorded = process.Recorded
	// ProfileOptions say how a recording is walked.
	ProfileOptions = profile.Options
	// A ProfilePart is one of the parts that a recording is divided into.
	ProfilePart = profile.Part
	// A ProfileEvent is what was sampled.
	ProfileEvent = profile.Event
	// A ProfileThread is a thread under one name.
	ProfileThread = profile.Thread
	// A ProfileSample is one moment of one thread.
	ProfileSample = profile.Sample
	// A ProfileStack is a frame and who called it.
	ProfileStack = profile.Stack
	// A ProfileFrame is a physical frame at one address.
	ProfileFrame = profile.Frame
	// A ProfileModule is a code object where a process had it mapped.
	ProfileModule = profile.Module
	// A ProfileKernel is a function of an accelerator that was dispatched.
	ProfileKernel = profile.Kernel
	// A ProfileAnnotation is a function with its lines and instructions.
	ProfileAnnotation = profile.Annotation
	// A ProfileAnnotatedLine is a line of a function's source.
	ProfileAnnotatedLine = profile.AnnotatedLine
	// A ProfileAnnotatedInstruction is an instruction of a function.
	ProfileAnnotatedInstruction = profile.AnnotatedInstruction
	// A ProfileAnnotatedPlace is where a frame is in a function.
	ProfileAnnotatedPlace = profile.AnnotatedPlace
	// LaunchEvidence is how it is known which stack launched a wave.
	LaunchEvidence = profile.LaunchEvidence
)

// How it is known who launched a wave; see profile.LaunchEvidence.
const (
	LaunchUnknown  = profile.LaunchUnknown
	LaunchNear     = profile.LaunchNear
	LaunchProbe    = profile.LaunchProbe
	LaunchRecorded = profile.LaunchRecorded
)

// SignatureVersion is the newest version of the rules by which signatures are made.
const SignatureVersion = signature.Version

// KernelTimeEvent is the event of dispatches; see profile.KernelTimeEvent.
const KernelTimeEvent = profile.KernelTimeEvent

// How a frame was found; see code.FoundBy.
const (
	ByContext      = code.ByContext
	ByCFI          = code.ByCFI
	ByBreakpad     = code.ByBreakpad
	ByPE           = code.ByPE
	ByObject       = code.ByObject
	ByRules        = code.ByRules
	ByFramePointer = code.ByFramePointer
	ByScan         = code.ByScan
	ByCallChain    = code.ByCallChain
	ByLaunch       = code.ByLaunch
	ByCallSite     = code.ByCallSite
)

// Why a stack ends; see walk.StopReason.
const (
	StopOutermost    = walk.StopOutermost
	StopEndOfStack   = walk.StopEndOfStack
	StopNoModule     = walk.StopNoModule
	StopNoRow        = walk.StopNoRow
	StopNoProgress   = walk.StopNoProgress
	StopFrameLimit   = walk.StopFrameLimit
	StopPluginFailed = walk.StopPluginFailed
	StopNoMemory     = walk.StopNoMemory
)

// What a lane does; see walk.LaneState.
const (
	LaneActive     = walk.LaneActive
	LaneInactive   = walk.LaneInactive
	LaneNotOnEntry = walk.LaneNotOnEntry
	LaneUnknown    = walk.LaneUnknown
)

// What came of looking for debug information; see code.DebugInfo.
const (
	DebugInfoFound      = code.DebugInfoFound
	DebugInfoNone       = code.DebugInfoNone
	DebugInfoMismatch   = code.DebugInfoMismatch
	DebugInfoUnreadable = code.DebugInfoUnreadable
)

// Errors of walks.
var (
	// ErrNoFrame says that a stack has fewer frames than were asked for.
	ErrNoFrame = walk.ErrNoFrame
	// ErrNoCallValue is wrapped by the error of an Activation about what a function
	// was given, where that is not known.
	ErrNoCallValue = walk.ErrNoCallValue
	// ErrNotWalked is wrapped by the error of Walked for a target that was read,
	// and in which nothing could be walked for lack of an architecture.
	ErrNotWalked = walk.ErrNotWalked
)

// Profile walks the stacks of all samples of a perf.data file, and joins samples
// of accelerators to them. The path may be "" where there are such. What went
// wrong with one of them is why its stack ends; the error is that there is no
// file, or that it is no recording.
func (e *Engine) Profile(ctx context.Context, path string, o ProfileOptions) (*Profile, error) {
	return e.profileMaker().Make(ctx, path, o)
}

// ProfilePart walks the samples of one part of a perf.data file, and writes what
// ProfileOptions.Parts of the whole takes. Its errors are those of Profile, and that of w.
func (e *Engine) ProfilePart(ctx context.Context, path string, part ProfilePart, o ProfileOptions, w io.Writer) error {
	return e.profileMaker().MakePart(ctx, path, part, o, w)
}

func (e *Engine) profileMaker() *profile.Maker {
	return &profile.Maker{Shared: e.shared, Plugins: e.plugins, Finder: e.Finder, Sysroot: e.options.Sysroot, Disassembler: e.program}
}
