"""What makes the stand-in look alive: process, start-up, scheduler, HTTP. SGLang has none of it."""
