"""Planning: block sizes for a geometry and wishes, or the wishes that conflict."""
