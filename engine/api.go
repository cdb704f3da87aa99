// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/profile"
	"github.com/unwindd/unwindd/engine/signature"
	"github.com/unwindd/unwindd/engine/source"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target/process"
	"github.com/unwindd/unwindd/engine/value"
	"github.com/unwindd/unwindd/engine/walk"
)

// This file has the types of requests and results of walks and profiles, so that a
// program that uses an Engine imports one package.

type (
	// Stack is the walked stack of one thread; see walk.Stack.
	Stack = walk.Stack
	// Frame is one activation of a function; see walk.Frame.
	Frame = walk.Frame
	// Gap is frames of a stack that were left out; see walk.Gap.
	Gap = walk.Gap
	// FrameDetails has the details of a frame that Options ask for.
	FrameDetails = walk.FrameDetails
	// SourceLines are lines of a source file; see source.Lines.
	SourceLines = source.Lines
	// Variable is a variable of a frame with its value; see walk.Variable.
	Variable = walk.Variable
	// SymbolFrame is a function, or an inlined call, with its source position; see
	// symbol.Frame.
	SymbolFrame = symbol.Frame
	// ValueLimits bound the text of a variable's value; see value.Limits.
	ValueLimits = value.Limits
	// GlobalVariable is a variable that is in no frame; see walk.GlobalVariable.
	GlobalVariable = walk.GlobalVariable
	// RegisterValue is a general register of a frame.
	RegisterValue = walk.RegisterValue
	// Stopped is the reason that a stack ends; see walk.Stopped.
	Stopped = walk.Stopped
	// StopReason is the kind of a stack's end.
	StopReason = walk.StopReason
	// Signature is the key that crashes are grouped by; see signature.Signature.
	Signature = signature.Signature
	// Launcher is the thread that launched another one; see walk.Launcher.
	Launcher = walk.Launcher
	// LaneGroup is the lanes of a frame that are in one state at one place.
	LaneGroup = walk.LaneGroup
	// LaneSet is a set of lanes.
	LaneSet = walk.LaneSet
	// LaneState is the state of a lane in a frame.
	LaneState = walk.LaneState
	// Line is an instruction that Disassemble shows; see walk.Line.
	Line = walk.Line

	// FrameCode is the instructions around the PC of a frame; see walk.FrameCode.
	FrameCode = walk.FrameCode

	// FoundBy is how a frame was found; see code.FoundBy.
	FoundBy = code.FoundBy
	// ModuleInfo has the facts of a module; see code.Info.
	ModuleInfo = code.Info
	// DebugInfo is the result of the search for debug information.
	DebugInfo = code.DebugInfo

	// Profile has the stacks of all samples of a recording; see profile.Profile.
	Profile = profile.Profile
	// Recorded has the results of recording a live process; see process.Recorded.
	Recorded = process.Recorded
	// ProfileOptions has the options of walking a recording.
	ProfileOptions = profile.Options
	// ProfilePart is one of the parts that a recording is divided into.
	ProfilePart = profile.Part
	// ProfileEvent is an event that was sampled.
	ProfileEvent = profile.Event
	// ProfileThread is a thread under one name.
	ProfileThread = profile.Thread
	// ProfileSample is one moment of one thread.
	ProfileSample = profile.Sample
	// ProfileStack is a frame and its callers.
	ProfileStack = profile.Stack
	// ProfileFrame is a physical frame at one address.
	ProfileFrame = profile.Frame
	// ProfileModule is a code object where a process had it mapped.
	ProfileModule = profile.Module
	// ProfileKernel is a function of an accelerator that was dispatched.
	ProfileKernel = profile.Kernel
	// ProfileAnnotation is a function with its lines and instructions.
	ProfileAnnotation = profile.Annotation
	// ProfileAnnotatedLine is a line of a function's source.
	ProfileAnnotatedLine = profile.AnnotatedLine
	// ProfileAnnotatedInstruction is an instruction of a function.
	ProfileAnnotatedInstruction = profile.AnnotatedInstruction
	// ProfileAnnotatedPlace is where a frame is in a function.
	ProfileAnnotatedPlace = profile.AnnotatedPlace
	// LaunchEvidence is the evidence for the stack that launched a wave.
	LaunchEvidence = profile.LaunchEvidence
)

// Evidence for the launcher of a wave; see profile.LaunchEvidence.
const (
	LaunchUnknown  = profile.LaunchUnknown
	LaunchNear     = profile.LaunchNear
	LaunchProbe    = profile.LaunchProbe
	LaunchRecorded = profile.LaunchRecorded
)

// SignatureVersion is the newest version of the rules by which signatures are made.
const SignatureVersion = signature.Version

// OptimizedOut is the Status of a variable without a value at a PC.
const OptimizedOut = value.OptimizedOut

// DefaultValueLimits are the usual ValueLimits.
var DefaultValueLimits = value.DefaultLimits

// KernelTimeEvent is the event of dispatches; see profile.KernelTimeEvent.
const KernelTimeEvent = profile.KernelTimeEvent

// Ways in which a frame was found; see code.FoundBy.
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

// Reasons that a stack ends; see walk.StopReason.
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

// States of a lane; see walk.LaneState.
const (
	LaneActive     = walk.LaneActive
	LaneInactive   = walk.LaneInactive
	LaneNotOnEntry = walk.LaneNotOnEntry
	LaneUnknown    = walk.LaneUnknown
)

// Results of the search for debug information; see code.DebugInfo.
const (
	DebugInfoFound      = code.DebugInfoFound
	DebugInfoNone       = code.DebugInfoNone
	DebugInfoMismatch   = code.DebugInfoMismatch
	DebugInfoUnreadable = code.DebugInfoUnreadable
)

// Errors of walks.
var (
	// ErrNotWalked is wrapped by the error of Walked for a target that was read,
	// and in which nothing could be walked for lack of an architecture.
	ErrNotWalked = walk.ErrNotWalked
)
