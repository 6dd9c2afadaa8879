"""The scripted model: a loopback server that plays the model for real agent programs. See docs/scripted-model.md."""

from remuda.scripted_model.play import Kind
from remuda.scripted_model.record import ModelCall
from remuda.scripted_model.reply import Usage
from remuda.scripted_model.server import ScriptedModel

__all__ = ["Kind", "ModelCall", "ScriptedModel", "Usage"]
